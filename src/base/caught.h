// Converts exceptions into a Status. No exception leaves a module, so that failures can be reported to other ranks.
#pragma once

#include <exception>
#include <new>

#include "src/base/status.h"

namespace tutti {

// Never throws. Returns out_of_memory() if there is no memory for the message.
[[gnu::cold]] Status status_of(const std::exception& error) noexcept;

// Returns the Status or Result of `work`, or the exception of `work` as an error. Never throws.
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
