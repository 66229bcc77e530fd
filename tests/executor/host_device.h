// The GPU emulator: streams are queues, thread blocks are threads of the host, and memory is host memory. It reports
// the same errors as a GPU at the same time: errors in a stream are returned when the stream is synchronized.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "src/executor/thread_block/run_call.h"
#include "tests/executor/emulator_memory.h"
#include "tests/executor/host_stream.h"
#include "transports/shm/segment.h"

namespace tutti::test {

struct HostDeviceOptions {
  std::uint32_t thread_count = 2;    // Threads per thread block.
  std::uint32_t thread_blocks = 16;  // Concurrent thread blocks of all streams.
  std::uint32_t thread_block_bytes = 64 << 10;
  std::uint32_t ordinal = 0;
  std::size_t memory_bytes = std::size_t{5} << 28;  // Total memory of allocate().
  std::uint64_t unreachable = 0;  // Bit k: device k has no peer access, and its memory cannot be opened.
  DeviceDistance distance = {};   // Distance to all other devices.
  bool shares_by_file = false;    // allocate_shared() returns memory with a file.
  ComputeSharing sharing = ComputeSharing::all_processes;
  std::uint32_t queues = ~0U;        // Value in traits(). Streams of the emulator always run concurrently.
  int launch_lock = -1;              // If `sharing` is none: file that all processes lock to run one launch at a time.
  bool orders_writes = true;         // Writes of network cards arrive in order.
  bool free_holds_launches = false;  // Launches block while free() waits, like under a lock of the driver.
};

// Number and size of live objects, without memory that the device caches.
struct HostDeviceUsage {
  std::uint64_t allocations = 0, allocated_bytes = 0;            // allocate()
  std::uint64_t host_allocations = 0, host_allocated_bytes = 0;  // allocate_host()
  std::uint64_t mappings = 0, mapped_bytes = 0;                  // map_host()
  std::uint64_t opened = 0;                                      // open()
  std::uint64_t events = 0;                                      // Events and timers.
  std::uint64_t streams = 0;                                     // Streams, except the null stream.
  bool operator==(const HostDeviceUsage&) const = default;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostDeviceOptions& options = {});
  ~HostDevice() override;  // Waits for the null stream. All other streams and events must have been destroyed.
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  DeviceStream make_stream();
  void destroy_stream(DeviceStream stream);  // Waits for its work.
  HostStream& stream_of(DeviceStream stream);
  HostDeviceUsage usage() const;
  EmulatorMemory::Usage taken_or_kept() const { return memory_.taken_or_kept(); }
  bool freeing() const { return freeing_; }                       // free_holds_launches: true while free() waits.
  std::uint32_t held_launches() const { return held_launches_; }  // Number of launches that free() blocks.
  // Number of launches whose thread blocks became resident together, and one by one.
  std::uint32_t launches_together() const { return launches_together_; }
  std::uint32_t plain_launches() const { return plain_launches_; }
  // Returns the input of the first call of the first launches, in order.
  std::vector<const std::byte*> launched() const {
    const std::lock_guard lock(mutex_);
    return launched_;
  }

  const DeviceTraits& traits() const override { return traits_; }
  Result<std::byte*> allocate(std::size_t bytes) override { return memory_.take({bytes, false}); }
  // Waits for all work of the device, like some GPUs.
  void free(std::byte* memory) override;
  void recycle(std::byte* memory) override { memory_.keep(memory); }
  void set_aside(std::byte* memory) override { memory_.set_aside(memory); }
  void free_kept() override { memory_.free_kept(); }
  bool holds(const std::byte* memory) const override { return memory_.find(memory, 1).has_value(); }
  Status upload(std::byte* to, std::span<const std::byte> from) override;
  Result<HostMemory> allocate_host(std::size_t bytes) override;
  void free_host(const HostMemory& memory) override;
  Result<HostMemory> map_host(std::byte* memory, std::size_t bytes) override;
  void unmap_host(const HostMemory& memory) override;
  Result<File> dma_buf_of(std::byte* memory, std::size_t bytes) override;
  DeviceDistance distance_to(const DeviceIdentity&) const override { return options_.distance; }
  Status enable_peer_access(const Device& peer) override;
  Result<std::byte*> allocate_shared(std::size_t bytes) override;
  Result<DeviceShare> share_of(std::byte* memory, std::size_t bytes, File& file) override;
  Result<std::byte*> open(const DeviceShare& share, const File& file) override;
  void close(std::byte* memory) override;
  Result<std::unique_ptr<DeviceEvent>> make_event() override;
  Result<std::unique_ptr<DeviceTimer>> make_timer() override;
  Result<std::uint64_t> capture_of(DeviceStream stream) override { return stream_of(stream).capture(); }
  Status keep_for_graph(DeviceStream stream, std::shared_ptr<void> kept) override {
    return stream_of(stream).keep(std::move(kept));
  }
  Status launch(const DeviceLaunch& launch, DeviceStream stream) override;
  Status copy(std::byte* to, const std::byte* from, std::size_t bytes, DeviceStream stream) override;
  Status apply_residual(const ResidualTask& task, DeviceStream stream) override;
  Status put_word(std::uint32_t* word, std::uint32_t value, DeviceStream stream) override;
  Status hold_until(const std::uint32_t* word, std::uint32_t value, DeviceStream stream) override;
  Result<DeviceStream> make_queue() override { return make_stream(); }
  void drop_queue(DeviceStream queue) override { destroy_stream(queue); }

 private:
  // Arguments of a launch.
  struct Batch {
    KernelBatch calls;
    std::uint32_t count = 0, thread_blocks = 0, thread_block_bytes = 0;
  };

  struct Mapped {
    std::size_t bytes = 0;
    std::uint32_t times = 0;
  };

  Status run(const Batch& batch);
  void run_alone(const Batch& batch);
  void run_thread_blocks(const Batch& batch) const;
  Status check_reach(std::uint32_t ordinal) const;
  Result<std::byte*> adopt(File file, std::size_t bytes);
  void wait_for_all();

  const HostDeviceOptions options_;
  const DeviceTraits traits_;
  mutable std::mutex mutex_;
  std::mutex launch_mutex_;  // Locked by a launch that must run alone.
  std::mutex driver_;        // Locked by free().
  std::atomic<bool> freeing_{false};
  std::atomic<std::uint32_t> held_launches_{0}, launches_together_{0}, plain_launches_{0};
  static constexpr std::size_t kMaxRecorded = 64;
  std::vector<const std::byte*> launched_;
  std::condition_variable blocks_freed_;
  std::uint32_t blocks_busy_ = 0;
  EmulatorMemory memory_;                      // Memory that other processes can open.
  std::multimap<std::byte*, Segment> opened_;  // Opened memory of other devices and processes, once per open().
  std::map<std::byte*, std::size_t> host_allocated_;
  std::map<std::byte*, Mapped> mapped_;
  std::set<HostStream*> streams_;
  std::shared_ptr<std::atomic<std::uint64_t>> events_;  // Number of live events and timers, shared with them.
  HostStream null_;                                     // The last member, because its work uses the others.
};

}  // namespace tutti::test
