#include "src/nccl/banner.h"

#include <fcntl.h>
#include <signal.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <string>
#include <string_view>

#include "src/base/log.h"
#include "src/nccl/environment.h"
#include "tutti/tutti.h"

#define TUTTI_TEXT_OF(number) #number
#define TUTTI_VERSION_TEXT(major, minor, patch) TUTTI_TEXT_OF(major) "." TUTTI_TEXT_OF(minor) "." TUTTI_TEXT_OF(patch)

namespace tutti::nccl {
namespace {

// Tools search the library file for "NCCL version" as well.
__attribute__((used)) const char kBanner[] = "NCCL version 2.28.9+cuda13.0 (served by Tutti " TUTTI_VERSION_TEXT(
    TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH) ")\n";

bool is_one_of(const std::string& text, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return ::strcasecmp(text.c_str(), name) == 0; });
}

// TUTTI_LOG overrides NCCL_DEBUG, as in the log.
std::string level() {
  const std::string own = variable("TUTTI_LOG");
  return own.empty() ? variable("NCCL_DEBUG") : own;
}

bool logs_info() { return is_one_of(level(), {"INFO", "TRACE"}); }

bool logs_version() {
  if (logs_info()) return true;
  return variable("TUTTI_LOG").empty() && is_one_of(variable("NCCL_DEBUG"), {"VERSION", "WARN", "ABORT"});
}

// Ignores errors. A pipe without reader must not end the process by SIGPIPE.
void write_line(int descriptor, std::string_view line) {
  sigset_t pipe, before, pending;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const bool failed = ::write(descriptor, line.data(), line.size()) < 0;
  const timespec at_once = {};
  if (failed && ::sigismember(&pending, SIGPIPE) == 0) ::sigtimedwait(&pipe, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void write_to_log(std::string_view line) {
  std::string file = variable("TUTTI_LOG_FILE");
  if (file.empty()) file = variable("NCCL_DEBUG_FILE");
  int descriptor = -1;
  if (!file.empty())
    descriptor = ::open(expand_log_file(file).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  write_line(descriptor < 0 ? STDERR_FILENO : descriptor, line);
  if (descriptor >= 0) ::close(descriptor);
}

// Host, process and thread, as in the library's log.
std::string prefix() {
  char host[64] = "";
  ::gethostname(host, sizeof host - 1);
  return std::string(host) + ":" + std::to_string(::getpid()) + ":" + std::to_string(::gettid());
}

}  // namespace

void print_version_once() {
  static std::atomic_flag printed;
  if (logs_version() && !printed.test_and_set()) write_to_log(std::string_view(kBanner, sizeof kBanner - 1));
}

void log_info(const std::string& text) {
  if (logs_info()) write_to_log(prefix() + " TUTTI INFO " + text + "\n");
}

void log_warning(const std::string& text) {
  if (!is_one_of(level(), {"NONE"})) write_to_log(prefix() + " TUTTI WARN " + text + "\n");
}

}  // namespace tutti::nccl
