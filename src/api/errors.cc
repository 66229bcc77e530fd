#include "src/api/errors.h"

#include <new>
#include <utility>

#include "src/api/call_entry.h"
#include "src/base/per_thread.h"

namespace tutti {
namespace {

PerThread<std::string> last_error;
constexpr const char* kOutOfMemory = "out of memory";

constexpr bool same(tutti_status status, Code code) { return static_cast<int>(status) == static_cast<int>(code); }
static_assert(same(tutti_ok, Code::ok) && same(tutti_invalid_argument, Code::invalid_argument) &&
              same(tutti_invalid_usage, Code::invalid_usage) && same(tutti_system_error, Code::system) &&
              same(tutti_remote_error, Code::remote) && same(tutti_timeout, Code::timeout) &&
              same(tutti_aborted, Code::aborted) && same(tutti_unsupported, Code::unsupported) &&
              same(tutti_internal_error, Code::internal));

tutti_status set_last_error(const char* function, tutti_status status, const char* message) {
  std::string* last = last_error.get();
  if (last == nullptr) return status;
  try {
    std::string text = function == nullptr ? "" : function;
    text.append(": ").append(message == nullptr ? "" : message);  // `message` may point into *last.
    *last = std::move(text);
  } catch (const std::bad_alloc&) {
    *last = kOutOfMemory;  // Fits the string's own buffer.
  }
  return status;
}

}  // namespace

tutti_status report(const char* function, const Status& status) {
  return set_last_error(function, static_cast<tutti_status>(status.code()), status.message().c_str());
}

// Returns the text of the thread's last failure; an out-of-memory text if report() could not store it.
const char* last_error_of_thread() {
  const std::string* text = last_error.get();
  return text == nullptr ? kOutOfMemory : text->c_str();
}

}  // namespace tutti

extern "C" {

const char* tutti_status_name(tutti_status status) {
  if (status == tutti_in_progress) return "in progress";
  return tutti::name(static_cast<tutti::Code>(status));
}

tutti_status tutti_report(const char* function, tutti_status status, const char* message) {
  return tutti::held_by_group(tutti::set_last_error(function, status, message), nullptr);
}

int tutti_version(void) { return TUTTI_VERSION; }

}  // extern "C"
