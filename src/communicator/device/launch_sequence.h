// Collectives of one rank that run in order in a single launch, at most kMaxCalls.
#pragma once

#include <cstddef>
#include <vector>

#include "src/communicator/call/call.h"
#include "src/communicator/device/prepared_call.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

// Each thread block runs its channel of all calls. It does not wait for other thread blocks between two calls, so no
// call may access what another one writes. Peers may launch the same calls one by one, since the order on each channel
// is the same.
class LaunchSequence {
 public:
  LaunchSequence(Rank rank, Rank ranks) : rank_(rank), ranks_(ranks) {}

  // True if `job`, the work of `call`, may follow the jobs added so far.
  bool admits(const Call& call, const DeviceJob& job) const;
  void add(const Call& call, const DeviceJob& job);
  bool empty() const { return launch_.count == 0; }
  // Returns the launch of the added jobs, and begins another one.
  DeviceLaunch take();

 private:
  // A buffer of the program.
  struct Buffer {
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
    bool is_output = false;
  };
  static bool conflict(const Buffer& one, const Buffer& other);
  std::vector<Buffer> buffers_of(const Call& call) const;

  Rank rank_, ranks_;
  DeviceLaunch launch_ = {.threads = 0};
  bool only_ll_ = true;  // All added jobs use LL without memory of the library that calls share.
  std::vector<Buffer> buffers_;
};

}  // namespace tutti
