#include "src/base/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tutti {

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

Status::Status(Code code, std::string message) {
  if (code != Code::ok) detail_ = std::make_unique<Detail>(Detail{code, std::move(message)});
}

const std::string& Status::message() const {
  static const std::string empty;
  return detail_ ? detail_->message : empty;
}

Status Status::during(std::string_view action) && {
  if (detail_) detail_->message.append("; while ").append(action);
  return std::move(*this);
}

Status invalid_argument(std::string message) { return {Code::invalid_argument, std::move(message)}; }
Status invalid_usage(std::string message) { return {Code::invalid_usage, std::move(message)}; }
Status remote_error(std::string message) { return {Code::remote, std::move(message)}; }
Status timeout_error(std::string message) { return {Code::timeout, std::move(message)}; }
Status aborted_error(std::string message) { return {Code::aborted, std::move(message)}; }
Status unsupported(std::string message) { return {Code::unsupported, std::move(message)}; }
Status internal_error(std::string message) { return {Code::internal, std::move(message)}; }

Status system_error(std::string_view action) {
  const int error = errno;  // Before anything else can change it.
  char text[128] = {};
  const char* reason = ::strerror_r(error, text, sizeof text);  // GNU's form: returns the text.
  return {Code::system, std::string(action) + ": " + reason};
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "tutti: %s:%d: assertion failed: %s (a bug in tutti: please report it)\n", file, line,
               condition);
  std::abort();
}

}  // namespace tutti
