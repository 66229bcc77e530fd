// Log lines for users: "host:pid:tid [device] TUTTI WARN text", the format of NCCL. Each line is one write(2) without
// locks or buffers, so forked children and all threads can log at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

enum class LogLevel : std::uint8_t { none, warn, info, trace };

// Cuts lines at about 1,000 bytes and replaces control characters.
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

void set_log_level(LogLevel level);                           // The level is warn until config() has been read.
bool logs(LogLevel level);                                    // Check this first if the arguments are expensive.
std::optional<LogLevel> log_level_of(std::string_view name);  // Parses "warn" in any case. nullopt if unknown.

// Appends log lines to a file instead of standard error. In `pattern`, %h is the host name, %p the process id, %% a
// percent sign. Returns false with errno, and changes nothing, if the file cannot be opened.
bool log_to_file(const std::string& pattern);
std::string expand_log_file(const std::string& pattern);

// Until the end of the scope, log lines of this thread show this GPU number. Negative: "cpu".
class LogDevice {
 public:
  explicit LogDevice(int device);
  ~LogDevice();
  LogDevice(const LogDevice&) = delete;
  LogDevice& operator=(const LogDevice&) = delete;

 private:
  int previous_;
};

// Receives whole lines with their newline instead of standard error or the file. Null restores these.
using LogSink = void (*)(std::string_view line);
void set_log_sink(LogSink sink);

}  // namespace tutti
