// How a Status leaves by a C function: its code is returned, its sentence kept for tutti_last_error.
#pragma once

#include <string>

#include "src/base/caught.h"
#include "src/base/no_cancellation.h"
#include "src/base/status.h"
#include "tutti/tutti.h"

namespace tutti {

// Keeps the sentence, begun with the function's name, for the calling thread.
[[gnu::cold]] tutti_status report(const char* function, const Status& status);

const char* last_error_of_thread();

inline tutti_status leave(const char* function, const Status& status) {
  return __builtin_expect(status.ok(), 1) ? tutti_ok : report(function, status);
}

// Runs the body of a C function. No exception leaves it, and the thread is not cancelled in it.
template <typename Body>
tutti_status guarded(const char* function, Body&& body) {
  const NoCancellation until_return;
  return leave(function, caught(std::forward<Body>(body)));
}

}  // namespace tutti
