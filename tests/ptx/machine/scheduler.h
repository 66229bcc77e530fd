// The machine's thread: places thread blocks on devices and executes them in an unfair order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "tests/ptx/machine/executor.h"

namespace tutti::ptx {

struct BlockDemand {  // Share of a multiprocessor that a thread block takes.
  std::uint32_t threads = 0, registers = 0, shared_bytes = 0;
};
BlockDemand demand_of(const KernelInfo& kernel, const DeviceLimits& limits, std::uint32_t threads,
                      std::uint32_t dynamic_shared_bytes);
// Thread blocks with this demand that fit on an empty multiprocessor.
std::uint32_t blocks_that_fit(const BlockDemand& demand, const DeviceLimits& limits);

inline BlockRecord record_of(const std::optional<OperationOrder>& order, std::uint32_t operation, int device) {
  return {0, operation, device, order ? order->chain : 0, order ? order->number : 0};
}

inline std::uint64_t count_of(const Extent& extent) { return std::uint64_t{extent.x} * extent.y * extent.z; }

struct Machine::Thread {
  Thread(AddressSpace& space, std::vector<DeviceLimits> device_limits, MachineOptions machine_options);
  ~Thread();

  Status check(const KernelLaunch& launch, const Code*& code) const;
  Status start(KernelLaunch launch, LaunchDone done);
  void start(CopyLaunch copy, LaunchDone done);

  // The rest runs on the thread.
  void run();
  void take_launches(std::unique_lock<std::mutex>& lock);
  void execute(WaitingCopy& waiting);
  void execute_copies();
  // Events that happen before an operation.
  ViewRef knowledge_of(const std::optional<OperationOrder>& order, std::uint64_t ended_before);
  // Ends blocks or a copy.
  void end_operation(const std::vector<std::uint32_t>& numbers, bool has_order);
  void place_blocks();
  bool place_block(Running& launch, const BlockDemand& demand);
  std::uint64_t room_for(int device, const BlockDemand& demand) const;
  void make_block(Running& launch, std::uint32_t multiprocessor);
  void run_phase();
  Block& choose_block();
  void run_slice(Block& block);
  void end_block(Block& block);
  void end_launch(Running& launch);
  void stop_launch(Running& launch, Fault fault);
  void stop_all(const Fault& fault);
  void advance_clock(bool progress, std::uint64_t real_ns);
  void report_deadlock();
  Fault make_fault(const Block& block, const Raised& raised) const;
  // `later` names the thread that made the second access.
  Fault make_fault(const RaisedRace& race, const std::string& later) const;
  std::string describe_size(const Cell& cell) const;
  std::string seed_text() const;
  std::uint64_t progress() const {
    return executor.events() + memory.changes() + ended.load(std::memory_order_relaxed);
  }

  struct Usage {
    BlockDemand used;
    std::uint32_t blocks = 0;
  };
  struct Device {
    std::deque<Running*> waiting;
    std::vector<Usage> multiprocessors;
  };
  struct Record {  // A launch or a copy, for reports of races.
    std::shared_ptr<const Program> program;
    const Code* code = nullptr;  // Null for a copy.
    std::string copy;            // Its description.
  };
  std::string describe_access(const Cell& cell, const std::string& actor) const;

  const std::vector<DeviceLimits> limits;
  const MachineOptions options;

  mutable std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::unique_ptr<Running>> incoming;
  std::deque<WaitingCopy> incoming_copies;
  bool stopping = false;
  std::vector<std::uint32_t> busy;  // Launches by device.
  MachineCounters counters;
  std::atomic<std::uint64_t> ended{0};  // Operations that ended: the stamp.
  std::atomic<bool> has_incoming{false};
  std::atomic<std::uint64_t> now_ns{0};

  Random random;
  Clocks clocks;
  GlobalMemory memory;
  Executor executor;
  std::vector<Device> devices;
  std::vector<std::unique_ptr<Running>> launches;
  std::deque<WaitingCopy> copies;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Record> records;
  std::multimap<std::size_t, std::unique_ptr<std::byte, void (*)(void*)>> spare;  // Memory of ended blocks, by size.
  std::uint64_t last_progress_ns = 0;
  std::uint32_t idle_phases = 0;
  std::uint32_t phase_slices = 0;  // Left, with these weights.
  std::thread thread;              // Last: the others exist when it starts.
};

}  // namespace tutti::ptx
