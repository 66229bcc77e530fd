// What every wait watches: a deadline, and a word that another thread sets to end it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/status.h"

namespace tutti {

struct Watch {
  Deadline deadline;
  const std::uint32_t* abort = nullptr;  // Not 0: aborted. Null: nobody aborts.

  bool aborted() const { return abort != nullptr && load_acquire(abort) != 0; }
  // How long poll(2) may sleep so that an abort is seen within 20 ms.
  int poll_ms() const {
    constexpr std::int64_t abort_ms = 20;
    const std::int64_t left = deadline.left_ms();
    return static_cast<int>(abort == nullptr ? left : std::min(left, abort_ms));
  }
};

}  // namespace tutti
