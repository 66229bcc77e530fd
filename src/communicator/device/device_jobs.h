// Binds prepared calls to the buffers, windows, scratch memory and rounding options of single calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/communicator/call/backend.h"
#include "src/communicator/device/call_order.h"
#include "src/communicator/device/kernel_reports.h"
#include "src/communicator/device/prepared_call.h"
#include "src/communicator/device/windows.h"
#include "src/communicator/peers/peer_set.h"
#include "src/executor/thread_block/compression_rounding.h"

namespace tutti {

// Device memory for rounding options beyond the format: one buffer per call. Not thread-safe.
class RoundingBuffers {
 public:
  // Rounding options of a call, then a run count of the graph for each channel.
  static constexpr std::size_t kBytes = sizeof(KernelRounding) + kMaxChannels * sizeof(std::uint32_t);

  // Ensures that `count` buffers are available. May wait for the device.
  Status provide(RankDeviceMemory& memory, std::size_t count);
  // Returns a used buffer with its content, or new device memory if none is left.
  Result<std::byte*> take(RankDeviceMemory& memory);
  // Lends `buffer` to a graph. The buffer is available again once the last copy of the result is destroyed.
  std::shared_ptr<void> lease(std::byte* buffer);

 private:
  // Shared with graphs, which may outlive the communicator and return buffers from any thread.
  struct Lent {
    std::mutex mutex;
    std::vector<std::byte*> back;  // Returned buffers; its capacity suffices for all.
    std::size_t count = 0;         // Number of buffers lent, including returned ones.
  };
  void collect();

  std::vector<std::byte*> ready_;
  std::shared_ptr<Lent> lent_ = std::make_shared<Lent>();
};

// Not thread-safe.
class DeviceJobs {
 public:
  // All arguments must outlive this object.
  DeviceJobs(Rank self, const PeerSet& peers, const DeviceWindows& windows, const DeviceCallOrder& order)
      : self_(self), peers_(peers), windows_(windows), order_(order) {}

  // Sets where thread blocks report. Called once, before the first call. `reports` must outlive all jobs.
  void use(const KernelReports& reports) { reports_ = &reports; }
  // Sets the number of collectives that joining took: a call then has the same number as on host memory, where joining
  // takes none.
  void set_joining(std::uint64_t calls) { joining_ = calls; }

  // Allocates the memory of a call before peers see any call of its group. `roundings` counts the rank's calls in the
  // group so far that need a rounding buffer.
  Status provide(const PreparedDeviceCall& prepared, const RequestedRounding& requested, std::size_t& roundings);
  // Returns the device work of a call, which is among those that `order` has begun.
  Result<DeviceJob> job_of(PreparedDeviceCall& prepared, const Call& call, const CommunicatorOptions& options,
                           Signature signature);

 private:
  Result<std::byte*> scratch(std::size_t bytes);
  void add_copies(const PreparedDeviceCall& prepared, const Call& call, DeviceJob& job) const;
  Status bind_rounding(const PreparedDeviceCall& prepared, const Call& call, const RequestedRounding& requested,
                       DeviceJob& job);
  Result<const KernelRounding*> upload_rounding(KernelRounding rounding, std::uint32_t channels);

  const Rank self_;
  const PeerSet& peers_;
  const DeviceWindows& windows_;
  const DeviceCallOrder& order_;
  const KernelReports* reports_ = nullptr;
  std::uint64_t joining_ = 0;
  std::byte* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  RoundingBuffers rounding_buffers_;
};

}  // namespace tutti
