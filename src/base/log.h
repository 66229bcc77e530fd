// Lines for people: "host:pid:tid [rank] TUTTI WARN text", as NCCL's tools expect. Each is one write(2): no locks, no
// buffers, so that forked children and threads can log at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti {

enum class LogLevel : std::uint8_t { none, warn, info, trace };

// Cut at about 1,000 bytes; control characters are replaced.
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

void set_log_level(LogLevel level);                           // warn until config() was read.
bool logs(LogLevel level);                                    // Ask first where the arguments are costly.
std::optional<LogLevel> log_level_of(std::string_view name);  // "warn", in any case.

// Lines of this thread carry this rank until the end of the scope.
class LogRank {
 public:
  explicit LogRank(std::uint32_t rank);
  ~LogRank();
  LogRank(const LogRank&) = delete;
  LogRank& operator=(const LogRank&) = delete;

 private:
  std::int64_t previous_;
};

// Where lines go instead of standard error, whole and with their newline. Null: back to standard error.
using LogSink = void (*)(std::string_view line);
void set_log_sink(LogSink sink);

}  // namespace tutti
