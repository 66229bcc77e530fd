// Turns exceptions into a Status. No exception leaves a module, so that a failure can be reported to other ranks.
#pragma once

#include <exception>
#include <new>

#include "src/base/status.h"

namespace tutti {

// Throws nothing: out_of_memory() if there is no memory for the message.
[[gnu::cold]] Status status_of(const std::exception& error) noexcept;

// Returns what `work` returns, a Status or a Result. An exception becomes an error. Throws nothing.
template <typename Work>
[[gnu::always_inline]] inline auto caught(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return status_of(error);
  }
}

}  // namespace tutti
