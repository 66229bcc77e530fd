// End of a wait: a deadline, and an abort word that another thread sets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/status.h"

namespace tutti {

struct Watch {
  Deadline deadline;
  const std::uint32_t* abort = nullptr;  // Aborted if *abort is nonzero. Null: cannot be aborted.

  bool aborted() const { return abort != nullptr && load_acquire(abort) != 0; }
  // Returns the timeout for poll(2) that detects an abort within 20 ms.
  int poll_ms() const {
    constexpr std::int64_t abort_ms = 20;
    const std::int64_t left = deadline.left_ms();
    return static_cast<int>(abort == nullptr ? left : std::min(left, abort_ms));
  }
};

}  // namespace tutti
