#include "tests/ptx/machine/machine.h"

#include <algorithm>

#include "tests/ptx/machine/scheduler.h"

namespace tutti::ptx {

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::launch: return "invalid launch";
    case FaultKind::bounds: return "access out of bounds";
    case FaultKind::use_after_free: return "use after free";
    case FaultKind::access_denied: return "access denied";
    case FaultKind::alignment: return "misaligned access";
    case FaultKind::state_space: return "wrong state space";
    case FaultKind::uninitialised: return "uninitialised value";
    case FaultKind::mask: return "wrong member mask";
    case FaultKind::barrier: return "wrong barrier";
    case FaultKind::race: return "data race";
    case FaultKind::deadlock: return "deadlock";
    case FaultKind::trap: return "trap";
  }
  return "fault";
}

Machine::Machine(AddressSpace& space, std::vector<DeviceLimits> limits, MachineOptions options)
    : thread_(std::make_unique<Thread>(space, std::move(limits), options)) {}

Machine::~Machine() = default;

Status Machine::start(KernelLaunch launch, LaunchDone done) {
  return thread_->start(std::move(launch), std::move(done));
}

void Machine::start(CopyLaunch copy, LaunchDone done) { thread_->start(std::move(copy), std::move(done)); }

void Machine::observe(const OperationClock& clock) { thread_->clocks.host().add(clock); }

std::uint32_t Machine::blocks_per_multiprocessor(const Module& module, const KernelInfo& kernel, std::uint32_t threads,
                                                 std::uint32_t dynamic_shared_bytes) const {
  const DeviceLimits& limits = thread_->limits[static_cast<std::size_t>(module.device())];
  if (kernel.shared_bytes + dynamic_shared_bytes > limits.shared_bytes_per_block) return 0;
  if (threads == 0 || threads > kernel.threads_per_block_max) return 0;
  return blocks_that_fit(demand_of(kernel, limits, threads, dynamic_shared_bytes), limits);
}

bool Machine::busy() const {
  const std::lock_guard lock(thread_->mutex);
  return std::any_of(thread_->busy.begin(), thread_->busy.end(), [](std::uint32_t launches) { return launches > 0; });
}

bool Machine::busy(int device) const {
  const std::lock_guard lock(thread_->mutex);
  return thread_->busy[static_cast<std::size_t>(device)] > 0;
}

std::uint64_t Machine::now_ns() const { return thread_->now_ns.load(std::memory_order_relaxed); }

MachineCounters Machine::counters() const {
  const std::lock_guard lock(thread_->mutex);
  return thread_->counters;
}

}  // namespace tutti::ptx
