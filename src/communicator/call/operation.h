// Work in progress that one thread can drive beside other work, as a group does.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/status.h"
#include "src/plan/problem.h"

namespace tutti {

// Maximum wait of a failed call for peers that access its buffers. Peers may be stopped, or in a fold of several GB.
inline constexpr std::int64_t kRemoteAccessMs = 1000;

// Returns whether a call failed because it is invalid, before any work was done. Such a failure does not
// make the communicator fail; shown_to_peers() shows it to the peers.
inline bool is_rejected_call(const Status& status) {
  return status.code() == Code::invalid_argument || status.code() == Code::unsupported;
}

class Operation {
 public:
  virtual ~Operation() = default;
  // Progresses as far as peers allow, without waiting. Returns true when done.
  virtual Result<bool> advance() = 0;
  // Called after advance() returned false. Counts an unsuccessful poll, and may sleep or yield. Fails if the
  // communicator has failed or the wait has exceeded its limit.
  virtual Status wait() = 0;
};

// Advances each operation once and removes those that are done. Returns whether any was done.
Result<bool> advance_all(std::vector<std::unique_ptr<Operation>>& operations);
// Advances all operations in turn until all are done.
Status drive(std::vector<std::unique_ptr<Operation>>& operations);

}  // namespace tutti
