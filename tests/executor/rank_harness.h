// One rank of a test call: its plan bound to lanes, its buffers, and the results of a thread block or a CPU.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/brief.h"
#include "src/executor/cpu/machine.h"
#include "src/executor/straighten.h"
#include "src/executor/thread_block/call.h"
#include "src/plan/lanes.h"
#include "tests/executor/host_thread_block.h"
#include "tests/executor/test_buffers.h"
#include "tests/executor/test_lanes.h"

namespace tutti::test {

class RankHarness {
 public:
  RankHarness(const Plan& plan, const std::vector<LaneUse>& uses, const TestCall& test_call, TestLanes& lanes_made);

  RankBuffers buffers(std::uint32_t operation) const { return test_buffers_[operation].buffers(); }
  bool names_peers() const { return compiled_[0]->uses_mapped_memory(); }

  // Runs on a CPU. `buffers`: of all ranks, for each operation.
  void run(const std::vector<std::vector<RankBuffers>>& buffers, Watch& watch);
  // Runs one operation on a CPU, as far as the peers allow.
  void start(const std::vector<RankBuffers>& buffers, std::uint32_t operation);
  Progress advance() { return interpreter_->advance(); }
  const Cursor& cursor() const { return interpreter_->cursor(); }

  // The operations for a thread block. `records`: of all ranks' meetings; empty if no rank names peers' memory.
  std::vector<KernelCall> calls(std::span<MeetingRecord* const> records);

  // Gives an operation the input of another one, and an unwritten output.
  void load(std::uint32_t operation, std::uint32_t number) {
    test_buffers_[operation].load(plan_.steps.self(), number);
  }

  // Number of operations that ran from a compiled schedule.
  std::uint32_t brief_runs() const { return brief_runs_; }

  // The reason if it did not complete.
  const std::string& stopped_by() const { return complaint_; }

  // The error in its results.
  std::string complaint() const;
  // Where its memory differs in any bit from that of the same rank of another test call.
  std::string differs_from(const RankHarness& other) const;

 private:
  const Program& program() const { return compiled_[0]->program(); }
  CachePolicy cache_policy() const;
  void lay_out();
  LaneState* bind(const std::vector<LaneUse>& uses, const Operand& operand, bool sends, TestLanes& lanes_made,
                  std::uint16_t channel) const;
  bool finish(std::uint32_t operation, Watch& watch);
  bool run_briefly(std::uint32_t operation, Watch& watch);
  bool fail(const std::string& complaint, Watch& watch);

  const Plan& plan_;
  const TestCall& test_call_;
  std::vector<std::unique_ptr<CompiledPlan>> compiled_;  // By channel.
  MachineMemory memory_;
  Launch launch_;
  std::pmr::memory_resource* reach_;  // Memory that a thread block can read and write.
  std::pmr::vector<Number> scratch_;
  std::pmr::vector<std::byte> image_;
  std::pmr::vector<LaneState*> ends_;
  std::pmr::vector<std::uint64_t> meetings_;
  std::pmr::vector<WindowPart> windows_;    // Only number 0: buffers are named by their addresses.
  std::pmr::vector<std::uint32_t> visits_;  // By channel,
  std::pmr::vector<std::uint32_t> failed_;  // and one word.
  std::pmr::vector<MeetingPlace> place_;
  std::vector<TestBuffers> test_buffers_;
  StraightProgram straight_;
  std::vector<Move> moves_;
  std::uint32_t brief_runs_ = 0;
  std::vector<RankBuffers> peers_;  // Used by a CPU.
  std::optional<Interpreter<CpuMachine>> interpreter_;
  std::string complaint_;
};

// All ranks of a test call and their shared state. The test call must outlive it.
class RankSet {
 public:
  // `in_place`: selects a rank's plan.
  RankSet(const TestCall& test_call, ShmTransport& transport, const std::vector<bool>& in_place);

  const std::vector<std::unique_ptr<RankHarness>>& harnesses() const { return harnesses_; }
  const TestLanes& lanes_made() const { return lanes_made_; }

  // [rank][operation], for thread blocks.
  std::vector<std::vector<KernelCall>> calls();
  // Runs all ranks on this CPU, one after the other, without waiting. Returns an error, or an empty string.
  std::string run_in_turns();
  void load(std::uint32_t operation, std::uint32_t number);
  // The error in the ranks' results.
  std::string complaint() const;
  // Where a rank's memory differs in any bit from the other set.
  std::string differs_from(const RankSet& other) const;

 private:
  const TestCall& test_call_;
  std::pmr::memory_resource* reach_;
  TestLanes lanes_made_;
  std::vector<std::unique_ptr<RankHarness>> harnesses_;
  std::pmr::vector<MeetingRecord> records_;
  std::pmr::vector<MeetingRecord*> by_rank_;
};

}  // namespace tutti::test
