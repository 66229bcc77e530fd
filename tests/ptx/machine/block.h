// State of a resident thread block.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/ptx/machine/clocks.h"
#include "tests/ptx/machine/machine.h"
#include "tests/ptx/machine/shadow.h"

namespace tutti::ptx {

// A launch that waits or runs.
struct Running {
  KernelLaunch launch;
  LaunchDone done;
  const Code* code = nullptr;
  std::uint32_t number = 0;
  std::uint64_t ended_before = 0;  // Stamp: operations that ended before this one was started.
  ViewRef known;                   // Events that happen before the launch.
  std::uint64_t blocks_total = 0, blocks_placed = 0, blocks_done = 0;
  std::optional<Fault> fault;
  std::vector<std::uint32_t> numbers;  // Numbers of its blocks.
  LaunchCounters counters;
};

// A copy that waits.
struct WaitingCopy {
  CopyLaunch copy;
  LaunchDone done;
  std::uint64_t ended_before = 0;
};

// A store instruction of a warp that memory does not show yet.
struct PendingStore {
  std::uint32_t mask = 0;  // Threads whose part is pending.
  std::uint8_t warp = 0;
  std::uint8_t bytes = 0;  // Per thread.
  std::uint8_t unit = 0;   // Bytes that become visible at once.
  std::uint8_t element_bytes = 0;
  bool is_strong = false;
  bool is_whole = false;        // Volatile: all threads' parts become visible at once.
  bool shown_to_block = false;  // After a barrier.
  std::uint32_t delay = 0;      // Choices of drain_some() that it survives.
  Scope scope = Scope::block;
  std::uint32_t epoch = 0;
  std::uint32_t fences = 0;         // StoreBuffer::fences at the store.
  std::uint64_t low = 0, high = 0;  // All bytes are in [low, high).
  std::array<std::uint64_t, 32> addresses;
  std::array<std::array<std::uint64_t, 4>, 32> data;
  std::array<std::uint32_t, 32> clocks;
  std::vector<ViewRef> views;  // By thread, of releases; or empty.
};

// Pending stores of a thread block, oldest first.
struct StoreBuffer {
  static constexpr std::uint32_t kFilter = 1024;
  std::vector<std::unique_ptr<PendingStore>> stores;
  std::vector<std::unique_ptr<PendingStore>> spare;
  std::array<std::uint16_t, kFilter> filter{};  // Pending parts by hash of their granule.
  std::uint32_t capacity = 16;
  std::uint32_t fences = 0;  // Executed by the block, except those of sequential consistency, which empty the buffer.
  static std::uint32_t hash(std::uint64_t address) {
    return static_cast<std::uint32_t>((address >> 3) * 0x9e3779b1U >> 8) % kFilter;
  }
};

// Threads of a warp with the same program counter.
struct Group {
  enum class State : std::uint8_t {
    ready,
    gathering,  // Waits for the warp's other threads at an aligned barrier.
    barrier,    // Waits at barrier `barrier`.
    warp_wait,  // Waits for the threads of `members`.
  };
  std::uint32_t mask = 0;
  std::uint32_t pc = 0;
  State state = State::ready;
  std::uint8_t barrier = 0;
  std::uint32_t members = 0;
};

// A strong load of a warp, which polls if it is repeated before other accesses.
struct Poll {
  std::uint32_t pc = 0;
  std::array<std::uint64_t, 32> addresses{};
  std::uint64_t at = 0;  // Warp::instructions when it was last executed.
};

struct Warp {
  std::byte* arena = nullptr;      // Registers.
  std::uint64_t* local = nullptr;  // Local memory: word w of thread t at [32 * w + t].
  std::vector<Group> groups;
  std::uint32_t started = 0, live = 0;  // Threads.
  std::array<ThreadClocks, 32> threads;
  std::uint64_t polled_address = 0, polled_value = 0;  // The last strong load.
  std::uint32_t polled_pc = 0;
  // If launches are counted: executed instructions, strong loads since the last other access, and the number of
  // instructions up to which polling was counted.
  std::uint64_t instructions = 0;
  std::vector<Poll> polls;
  std::uint64_t polled_until = 0;
};

struct Barrier {
  std::uint32_t arrived = 0, expected = 0;  // Threads.
  std::uint32_t trues = 0;                  // Threads whose predicate is true.
  std::uint8_t action = 0;
  std::vector<std::uint32_t> waiting;  // Mask of each warp; empty: no thread has arrived.
  ViewRef before;                      // Knowledge of threads that do not wait, at their arrival; null: all wait.
};

struct Block {
  Running* running = nullptr;
  std::uint32_t number = 0;  // Over all launches.
  std::uint32_t epoch = 0;
  Extent index;
  std::uint32_t multiprocessor = 0;
  std::uint32_t threads = 0, live = 0;
  std::vector<Warp> warps;
  std::unique_ptr<std::byte, void (*)(void*)> memory{nullptr, std::free};  // Arenas and local memory.
  std::size_t memory_bytes = 0;
  std::vector<std::uint64_t> shared;  // Words.
  std::uint32_t shared_bytes = 0;
  Shadow shared_shadow;
  std::array<Barrier, 16> barriers;
  StoreBuffer buffer;
  std::uint32_t weight = 1;  // Share of slices in this phase of the scheduler.
};

// A fault in the instruction that runs; the executor adds the place.
struct Raised {
  FaultKind kind;
  std::string what;
  unsigned lane = 0;
};

// A data race in the instruction that runs.
struct RaisedRace {
  Cell earlier, later;
  std::uint64_t address = 0;
  unsigned lane = 0;
};

}  // namespace tutti::ptx
