#include "src/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace tutti {
namespace {

constexpr std::array<const char*, 4> kNames = {"NONE", "WARN", "INFO", "TRACE"};

std::atomic<LogLevel> level_now{LogLevel::warn};
std::atomic<LogSink> sink_now{nullptr};
std::atomic<int> descriptor_now{STDERR_FILENO};
thread_local int device_now = -1;

std::string host_name() {
  char host[64] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

// Holds back the SIGPIPE of this thread's writes to a pipe without reader, which would end the process by default.
class NoSigpipe {
 public:
  NoSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) != 0;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec at_once = {};
    while (!was_pending_ && ::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

// Gives up at the first error: a log line that cannot be written is no reason to fail.
void write_whole(std::string_view line) {
  const NoSigpipe until_written;
  const int descriptor = descriptor_now.load(std::memory_order_relaxed);
  while (!line.empty()) {
    const ssize_t count = ::write(descriptor, line.data(), line.size());
    if (count <= 0) return;  // A closed descriptor or a full disk must not fail the caller.
    line.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

bool logs(LogLevel level) { return level <= level_now.load(std::memory_order_relaxed); }
void set_log_level(LogLevel level) { level_now.store(level, std::memory_order_relaxed); }
void set_log_sink(LogSink sink) { sink_now.store(sink, std::memory_order_release); }

std::optional<LogLevel> log_level_of(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name.size() == std::strlen(kNames[i]) && ::strncasecmp(name.data(), kNames[i], name.size()) == 0) {
      return static_cast<LogLevel>(i);
    }
  }
  return std::nullopt;
}

void log(LogLevel level, const char* format, ...) {
  if (!logs(level)) return;
  const int error = errno;
  char line[1024];
  char device[16] = "cpu";
  if (device_now >= 0) std::snprintf(device, sizeof device, "%d", device_now);
  const int length = std::snprintf(line, sizeof line, "%s:%d:%d [%s] TUTTI %s ", host_name().c_str(), ::getpid(),
                                   ::gettid(), device, kNames[static_cast<std::size_t>(level)]);
  const std::size_t room = sizeof line - static_cast<std::size_t>(length) - 1;  // Reserves the newline.
  std::va_list arguments;
  va_start(arguments, format);
  const int text = std::vsnprintf(line + length, room, format, arguments);
  va_end(arguments);
  if (text < 0) return;
  const std::size_t end =
      static_cast<std::size_t>(length) + std::min<std::size_t>(static_cast<std::size_t>(text), room - 1);
  for (std::size_t i = 0; i < end; ++i) {
    if (static_cast<unsigned char>(line[i]) < ' ' || line[i] == 0x7f) line[i] = '?';  // Prevents forged lines.
  }
  line[end] = '\n';
  const LogSink sink = sink_now.load(std::memory_order_acquire);
  const std::string_view whole(line, end + 1);
  sink != nullptr ? sink(whole) : write_whole(whole);
  errno = error;  // Callers may still need it.
}

std::string expand_log_file(const std::string& pattern) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') path += host_name();
    if (next == 'p') path += std::to_string(::getpid());
    if (next == '%') path += '%';
    if (next == 'h' || next == 'p' || next == '%') ++i;
    else path += pattern[i];
  }
  return path;
}

bool log_to_file(const std::string& pattern) {
  const int descriptor = ::open(expand_log_file(pattern).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) return false;
  const int previous = descriptor_now.exchange(descriptor);
  if (previous != STDERR_FILENO) ::close(previous);
  return true;
}

LogDevice::LogDevice(int device) : previous_(device_now) { device_now = device; }
LogDevice::~LogDevice() { device_now = previous_; }

}  // namespace tutti
