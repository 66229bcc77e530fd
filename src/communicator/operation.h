// Work in flight that one thread can drive beside others: what a group runs.
#pragma once

#include <cstdint>

#include "src/base/status.h"
#include "src/plan/problem.h"

namespace tutti {

// A call that failed waits no longer for peers in its buffers. They may still be there: stopped, or in a fold of some
// GB.
inline constexpr std::int64_t kRemoteAccessMs = 1000;

// Whether a failure is of a call that cannot be made as it is, and that nothing was done for: no peer is told.
inline bool is_question(const Status& status) {
  return status.code() == Code::invalid_argument || status.code() == Code::unsupported;
}

class Operation {
 public:
  virtual ~Operation() = default;
  // Goes as far as the peers allow, without waiting. True when done.
  virtual Result<bool> advance() = 0;
  // After advance() came back false: one more fruitless poll. Fails when waiting has no sense any more.
  virtual Status wait() = 0;
};

}  // namespace tutti
