// A machine that executes PTX on a thread of its own: the kernels of all devices of a process. Its memory model is
// weaker than that of any GPU, and its scheduler is unfair. The CUDA runtime's rules (streams, events, loading) are not
// here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tests/ptx/machine/memory.h"
#include "tests/ptx/machine/module.h"
#include "tests/ptx/machine/operations.h"

namespace tutti::ptx {

struct Extent {
  std::uint32_t x = 1, y = 1, z = 1;
};

// Defaults: a small H100.
struct DeviceLimits {
  std::uint32_t multiprocessors = 8;
  std::uint32_t threads_per_multiprocessor = 2048;
  std::uint32_t blocks_per_multiprocessor = 32;
  std::uint32_t registers_per_multiprocessor = 65536;
  std::uint32_t shared_bytes_per_multiprocessor = 233472;
  std::uint32_t shared_bytes_per_block = 232448;
  std::uint32_t reserved_shared_bytes = 1024;  // Per thread block.
};

enum class FaultKind : std::uint8_t {
  launch,  // Invalid configuration; start() reports it.
  bounds,  // No registered memory.
  use_after_free,
  access_denied,  // Another device's memory without peer access.
  alignment,
  state_space,    // For example, ld.global of shared memory.
  uninitialised,  // Register or memory.
  mask,           // A member mask without the executing thread.
  barrier,        // Divergent or inconsistent barrier.
  race,
  deadlock,
  trap,  // trap, or an instruction with an undefined result.
};
const char* name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::launch;
  std::string text;  // Kernel, block, thread, PTX line, source line, and what happened. Ends with the machine's seed.
};

struct KernelLaunch {
  std::shared_ptr<const Module> module;
  std::string kernel;
  Extent grid, block;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;  // KernelInfo::parameter_bytes
  bool cooperative = false;           // All thread blocks become resident at once.
  // Without it, the launch happens after all operations that have ended when it is started.
  std::optional<OperationOrder> order = std::nullopt;
};

// A copy or fill of memory by a device. Its accesses to registered memory are weak.
struct CopyLaunch {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;  // Null: copies `staged`, or without it fills with `value`.
  std::shared_ptr<const std::vector<std::byte>> staged = nullptr;  // Read by the host before.
  std::size_t bytes = 0;
  int value = 0;
  // Writes the word `word` of 4 bytes instead: a release of system scope.
  bool writes_word = false;
  std::uint32_t word = 0;
  int device = 0;
  std::optional<OperationOrder> order = std::nullopt;  // As for launches.
  // The first to set it executes or cancels the copy; null: the copy cannot be cancelled.
  std::shared_ptr<std::atomic<bool>> claimed = nullptr;
};

// Counts of what the thread blocks of a launch executed, polls included.
struct LaunchCounters {
  std::uint64_t blocks = 0;
  std::uint64_t warp_instructions = 0;
  std::uint64_t polling_instructions = 0;  // A part of them: between executions of a repeated strong load.
  std::uint64_t barriers = 0;              // Each of a thread block.
  std::uint64_t fences = 0;  // System fences of warps, and stores and atomics that release at system scope.
  // Global and host memory: sectors of 32 bytes that instructions of warps touch, and bytes. Accesses to multicast
  // addresses count once, not for each device.
  std::uint64_t load_sectors = 0, store_sectors = 0;
  std::uint64_t loaded_bytes = 0, stored_bytes = 0;
};

struct MachineOptions {
  std::uint64_t seed = 1;
  bool detects_races = true;
  bool buffers_stores = true;  // Stores become visible late and out of order.
  bool loads_stale = true;     // Loads may return old values.
  // All running kernels fault if for so many milliseconds each of them only waits. 0: never.
  std::int64_t deadlock_ms = 60'000;
  std::string counts;  // File to which launches append their counters, a line each; empty: none.
};

struct MachineCounters {
  std::uint64_t instructions = 0;  // Per thread.
  std::uint64_t warp_instructions = 0;
  std::uint64_t launches = 0;
  std::uint64_t stale_loads = 0;
  std::uint64_t late_stores = 0;  // Stores that waited in a buffer.
};

// Called on the machine's thread, once per launch or copy that is not cancelled. Must not block on the machine; may
// call start().
using LaunchDone = std::function<void(const std::optional<Fault>&)>;

class Machine {
 public:
  // `space` must live longer. limits[d] describes device d.
  Machine(AddressSpace& space, std::vector<DeviceLimits> limits, MachineOptions options = {});

  // Stops running kernels; their LaunchDone receive a fault of kind launch.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Queues a launch on the module's device. Thread-safe; returns at once. Thread blocks start in the order of start()
  // as soon as they fit on the device. Fails if the configuration can never run; `done` is not called then.
  Status start(KernelLaunch launch, LaunchDone done);

  // Queues a copy. Thread-safe; returns at once. Copies do not wait for kernels.
  void start(CopyLaunch copy, LaunchDone done);

  // The host knows from now on that these operations have ended. Values that it stores later publish this. Thread-safe.
  void observe(const OperationClock& clock);

  // Thread blocks of this kind that fit on a multiprocessor at the same time. 0: never.
  std::uint32_t blocks_per_multiprocessor(const Module& module, const KernelInfo& kernel, std::uint32_t threads,
                                          std::uint32_t dynamic_shared_bytes) const;

  // True if launches wait or run. Thread-safe.
  bool busy() const;
  // True if a launch waits or runs on this device. Thread-safe.
  bool busy(int device) const;

  // Value of %globaltimer. It advances with the instructions, and with real time while kernels only wait. Thread-safe.
  std::uint64_t now_ns() const;

  MachineCounters counters() const;

 private:
  struct Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace tutti::ptx
