// No exception leaves a room: what is thrown becomes a failure, which others can be told of.
#pragma once

#include <exception>
#include <new>

#include "src/base/status.h"

namespace tutti {

// Does `work`, which returns a Status or a Result.
template <typename Work>
[[gnu::always_inline]] inline auto caught(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Status(Code::system, "out of memory");
  } catch (const std::exception& error) {
    return internal_error(error.what());
  }
}

}  // namespace tutti
