// Calls on a device: prepared once for all calls with one key, then bound to the buffers of one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/communicator/call/run_statistics.h"
#include "src/communicator/control/board.h"
#include "src/executor/thread_block/batch.h"
#include "src/executor/thread_block/residual.h"

namespace tutti {

// Prepared state of calls with one key: everything except their buffers and numbers.
struct PreparedDeviceCall {
  // `reported` must outlive this object.
  explicit PreparedDeviceCall(const ReportedRuns& reported) : runs(reported) {}

  const ReportedRuns& runs;   // Messages report nothing.
  bool has_residual = false;  // Adds the residual to the input and rounds the sum.
  bool mapped = false;        // Accesses peers' buffers.
  // Copy engines move the data. The entry has no plan: thread blocks await all ranks, before the copies and after them.
  bool by_copy_engines = false;
  CallRecord record;  // Not used by messages.
  BatchCall entry;
  std::uint32_t thread_block_bytes = 0;
  std::uint32_t threads = 0;    // See DeviceLaunch.
  std::byte* memory = nullptr;  // On the device: the image, then the lane ends.
  std::size_t memory_bytes = 0;
  std::byte* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  std::size_t scratch_bytes = 0;
  std::byte* ring = nullptr;     // The staging ring, if it is the scratch of the call.
  std::size_t copied_bytes = 0;  // Bytes of a copy that it reads instead of the caller's input.
  std::uint64_t latest = 0;      // Number of the last call that used it.
  bool replayed = false;         // By a graph.
  Carried carried;               // With compression: data of its messages.
};

struct DeviceCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

// Device work of one call: a copy, or rounding of an input with its residual, then a launch. Each is optional.
struct DeviceJob {
  std::byte* copy_to = nullptr;  // Null: no copy.
  const std::byte* copy_from = nullptr;
  std::size_t copy_bytes = 0;
  ResidualTask residual;  // Without a format: no rounding.
  bool launches = false;
  BatchCall entry;
  std::uint32_t thread_block_bytes = 0;
  std::uint32_t threads = 0;  // See DeviceLaunch.
  // By copy engines: the launch, these copies, the launch again, then the last copy if it has bytes.
  bool by_copy_engines = false;
  std::vector<DeviceCopy> copies;
  DeviceCopy last;
};

}  // namespace tutti
