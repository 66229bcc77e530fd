// How a Status leaves by a C function: its code is returned, its sentence kept for tutti_last_error.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "src/base/status.h"
#include "tutti/tutti.h"

namespace tutti {

// Keeps the sentence, begun with the function's name, for the calling thread, and for the end of its group.
[[gnu::cold]] tutti_status report(const char* function, Status status);

const char* last_error_of_thread();

inline tutti_status leave(const char* function, Status status) {
  return __builtin_expect(status.ok(), 1) ? tutti_ok : report(function, std::move(status));
}

// Nothing is thrown into C, nor out of a stream's work.
template <typename Body>
[[gnu::always_inline]] inline Status caught(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(Code::system, "out of memory");
  } catch (const std::exception& error) {
    return internal_error(error.what());
  }
}

// Runs the body of a C function.
template <typename Body>
tutti_status guarded(const char* function, Body&& body) {
  return leave(function, caught(std::forward<Body>(body)));
}

}  // namespace tutti
