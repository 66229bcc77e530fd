// Errors at the C boundary: a C function returns the code of a Status, and tutti_last_error returns its message.
#pragma once

#include <string>

#include "src/base/caught.h"
#include "src/base/no_cancellation.h"
#include "src/base/status.h"
#include "tutti/tutti.h"

namespace tutti {

// Stores the message, prefixed with the function's name, for tutti_last_error of the calling thread. Returns the code.
[[gnu::cold]] tutti_status report(const char* function, const Status& status);

const char* last_error_of_thread();

inline tutti_status leave(const char* function, const Status& status) {
  return __builtin_expect(status.ok(), 1) ? tutti_ok : report(function, status);
}

// Runs the body of a C function. Turns exceptions into a Status, and delays thread cancellation until after the body.
template <typename Body>
tutti_status guarded(const char* function, Body&& body) {
  const NoCancellation until_return;
  return leave(function, caught(std::forward<Body>(body)));
}

}  // namespace tutti
