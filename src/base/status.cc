#include "src/base/status.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tutti {
namespace {

// Returns the limit of open files that caused an error, and how to raise it; "" for other errors.
std::string exceeded_limit(int error) {
  if (error == ENFILE) return ": no process of this host may open more (fs.file-max)";
  rlimit files = {};
  if (error != EMFILE || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return "";
  return ": the limit of this process is " + std::to_string(files.rlim_cur) + ", raise it with ulimit -n";
}

}  // namespace

const char* name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid argument";
    case Code::invalid_usage: return "invalid usage";
    case Code::system: return "system error";
    case Code::remote: return "remote error";
    case Code::timeout: return "timeout";
    case Code::aborted: return "aborted";
    case Code::unsupported: return "unsupported";
    case Code::internal: return "internal error";
  }
  return "unknown code";
}

// The text fits the string's internal buffer, so no memory is allocated. Statuses on all threads may point to it until
// the process ends.
constinit Status::Detail Status::shared_out_of_memory = {Code::system, "out of memory", ENOMEM};

void Status::Deleter::operator()(Detail* detail) const noexcept {
  if (detail != &shared_out_of_memory) delete detail;
}

Status::Status(Code code, std::string message, int os_error) noexcept {
  if (code == Code::ok) return;
  detail_.reset(new (std::nothrow) Detail{code, std::move(message), os_error});
  if (detail_ == nullptr) detail_.reset(&shared_out_of_memory);
}

Status out_of_memory() noexcept {
  Status status;
  status.detail_.reset(&Status::shared_out_of_memory);
  return status;
}

const std::string& Status::message() const {
  static const std::string empty;
  return detail_ ? detail_->message : empty;
}

Status Status::during(std::string_view action) && noexcept {
  if (detail_ == nullptr) return {};
  try {
    std::string longer = detail_->message;
    longer.append("; while ").append(action);
    return {detail_->code, std::move(longer), detail_->os_error};
  } catch (const std::bad_alloc&) {
    return std::move(*this);
  }
}

Status invalid_argument(std::string message) { return {Code::invalid_argument, std::move(message)}; }
Status invalid_usage(std::string message) { return {Code::invalid_usage, std::move(message)}; }
Status remote_error(std::string message) { return {Code::remote, std::move(message)}; }
Status timeout_error(std::string message) { return {Code::timeout, std::move(message)}; }
Status aborted_error(std::string message) { return {Code::aborted, std::move(message)}; }
Status unsupported(std::string message) { return {Code::unsupported, std::move(message)}; }
Status internal_error(std::string message) { return {Code::internal, std::move(message)}; }

Status system_error(std::string_view action) {
  const int error = errno;  // Saved before other calls change it.
  char text[128] = {};
  const char* reason = ::strerror_r(error, text, sizeof text);  // The GNU version returns the text.
  return {Code::system, std::string(action) + ": " + reason + exceeded_limit(error), error};
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "tutti: %s:%d: assertion failed: %s (a bug in tutti: please report it)\n", file, line,
               condition);
  std::abort();
}

}  // namespace tutti
