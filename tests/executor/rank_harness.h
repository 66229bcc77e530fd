// A rank of a test call: its plan bound to lanes, its buffers, and the check of its results.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/backend.h"
#include "src/executor/cpu/brief.h"
#include "src/executor/straighten.h"
#include "src/executor/thread_block/call.h"
#include "src/plan/lanes.h"
#include "tests/executor/host_thread_block.h"
#include "tests/executor/test_buffers.h"
#include "tests/executor/test_lanes.h"

namespace tutti::test {

class RankHarness {
 public:
  // `rounds`: see StraightOptions.
  RankHarness(const Plan& plan, const std::vector<LaneUse>& uses, bool rounds, const TestCall& test_call,
              TestLanes& lanes_made);

  RankBuffers buffers(std::uint32_t operation) const {
    RankBuffers buffers = test_buffers_[operation].buffers();
    buffers.scratch = scratch();
    return buffers;
  }
  std::byte* scratch() const { return reinterpret_cast<std::byte*>(const_cast<Number*>(scratch_.data())); }
  bool names_peers() const { return compiled_[0]->uses_mapped_memory(); }

  // Runs all operations on a CPU. `buffers`: [operation][rank].
  void run(const std::vector<std::vector<RankBuffers>>& buffers, Watch& watch);
  // Runs one operation on a CPU. advance() continues until it must wait for peers.
  void start(const std::vector<RankBuffers>& buffers, std::uint32_t operation);
  Progress advance() { return interpreter_->advance(); }
  const Cursor& cursor() const { return interpreter_->cursor(); }

  // Returns the operations for a thread block. `records`: [rank] address records; empty if no rank uses peers' buffers.
  // `scratch`: [rank] scratch of all ranks.
  std::vector<KernelCall> calls(std::span<AddressRecord* const> records, std::span<std::byte* const> scratch);

  // Loads the input of operation `number` into the buffers of `operation`, and clears the output.
  void load(std::uint32_t operation, std::uint32_t number) {
    test_buffers_[operation].load(plan_.steps.self(), number);
  }

  // Returns the number of operations that ran from a compiled schedule.
  std::uint32_t brief_runs() const { return brief_runs_; }

  // Returns the reason if the rank did not complete.
  const std::string& stopped_by() const { return error_; }

  // Returns the error in the rank's results, or an empty string.
  std::string error() const;
  // Describes the first bit difference to the memory of the same rank of another test call; empty if there is none.
  std::string differs_from(const RankHarness& other) const;

 private:
  const Program& program() const { return compiled_[0]->program(); }
  CachePolicy cache_policy() const;
  void lay_out();
  LaneState* bind(const std::vector<LaneUse>& uses, const Operand& operand, bool sends, TestLanes& lanes_made,
                  std::uint16_t channel) const;
  bool finish(std::uint32_t operation, Watch& watch);
  bool run_briefly(std::uint32_t operation, Watch& watch);
  bool fail(const std::string& error, Watch& watch);

  const Plan& plan_;
  const bool rounds_;
  const TestCall& test_call_;
  std::vector<std::unique_ptr<CompiledPlan>> compiled_;  // [channel]
  BackendMemory memory_;
  Launch launch_;
  std::pmr::memory_resource* reach_;  // Memory that a thread block can read and write.
  std::pmr::vector<Number> scratch_;
  std::pmr::vector<std::byte> image_;
  std::pmr::vector<std::uint64_t> exchange_counts_;
  std::pmr::vector<WindowPart> windows_;    // Only window 0: buffers are named by their addresses.
  std::pmr::vector<AccessWords> accesses_;  // Words of this rank.
  std::pmr::vector<FailedWords> failed_;    // One set.
  std::pmr::vector<AddressExchange> exchange_;
  std::vector<TestBuffers> test_buffers_;
  StraightProgram straight_;
  std::vector<Move> moves_;
  std::uint32_t brief_runs_ = 0;
  std::vector<RankBuffers> peers_;  // [rank]; used on a CPU.
  std::optional<Interpreter<CpuBackend>> interpreter_;
  std::string error_;
};

// All ranks of a test call and their shared state. The test call must outlive it.
class RankSet {
 public:
  // in_place[rank] selects the plan of a rank.
  RankSet(const TestCall& test_call, ShmTransport& transport, const std::vector<bool>& in_place);

  const std::vector<std::unique_ptr<RankHarness>>& harnesses() const { return harnesses_; }
  const TestLanes& lanes_made() const { return lanes_made_; }

  // Returns the calls for thread blocks: [rank][operation].
  std::vector<std::vector<KernelCall>> calls();
  // Runs all ranks alternately in this thread, without waiting. Returns an error, or an empty string.
  std::string run_time_sliced();
  void load(std::uint32_t operation, std::uint32_t number);
  // Returns an error in the ranks' results, or an empty string.
  std::string error() const;
  // Describes the first bit difference to the other set; empty if there is none.
  std::string differs_from(const RankSet& other) const;

 private:
  const TestCall& test_call_;
  std::pmr::memory_resource* reach_;
  TestLanes lanes_made_;
  std::vector<std::unique_ptr<RankHarness>> harnesses_;
  std::pmr::vector<AddressRecord> records_;
  std::pmr::vector<AddressRecord*> by_rank_;
  std::pmr::vector<std::byte*> scratch_;  // [rank]
};

}  // namespace tutti::test
