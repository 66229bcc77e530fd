// One rank of a voyage: its plan bound to lanes, its buffers, and what a team or a CPU makes of them.
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
#include "src/executor/team/call.h"
#include "src/plan/lanes.h"
#include "tests/executor/cargo.h"
#include "tests/executor/host_team.h"
#include "tests/executor/wires.h"

namespace tutti::test {

class Sailor {
 public:
  Sailor(const Plan& plan, const std::vector<LaneUse>& uses, const Voyage& voyage, Wires& wires);

  RankBuffers buffers(std::uint32_t operation) const { return cargoes_[operation].buffers(); }
  bool names_peers() const { return compiled_[0]->uses_mapped_memory(); }

  // On a CPU. `buffers`: of all ranks, for each operation.
  void sail(const std::vector<std::vector<RankBuffers>>& buffers, Watch& watch);
  // Likewise, one operation, and as far as the peers allow.
  void start(const std::vector<RankBuffers>& buffers, std::uint32_t operation);
  Progress advance() { return interpreter_->advance(); }
  const Cursor& cursor() const { return interpreter_->cursor(); }

  // The operations as a team gets them. `records`: of all ranks' meetings; empty where no rank names peers' memory.
  std::vector<TeamCall> calls(std::span<MeetingRecord* const> records);

  // Gives an operation the input of another one, and an output that nobody has written.
  void load(std::uint32_t operation, std::uint32_t number) { cargoes_[operation].load(plan_.steps.self(), number); }

  // Operations that were run from a list of moves.
  std::uint32_t brief_runs() const { return brief_runs_; }

  // Why it did not come to the end, if it did not.
  const std::string& stopped_by() const { return complaint_; }

  // What is wrong with what it has ended with.
  std::string complaint() const;
  // Where its memory is not that of the same rank of another voyage, to the bit.
  std::string differs_from(const Sailor& other) const;

 private:
  const Program& program() const { return compiled_[0]->program(); }
  CacheManners manners() const;
  void lay_out();
  LaneState* bind(const std::vector<LaneUse>& uses, const Operand& operand, bool sends, Wires& wires,
                  std::uint16_t channel) const;
  bool finish(std::uint32_t operation, Watch& watch);
  bool run_briefly(std::uint32_t operation, Watch& watch);
  bool fail(const std::string& complaint, Watch& watch);

  const Plan& plan_;
  const Voyage& voyage_;
  std::vector<std::unique_ptr<CompiledPlan>> compiled_;  // By channel.
  MachineMemory memory_;
  Launch launch_;
  std::pmr::memory_resource* reach_;  // Where a team can read and write.
  std::pmr::vector<Number> scratch_;
  std::pmr::vector<std::byte> image_;
  std::pmr::vector<LaneState*> ends_;
  std::pmr::vector<std::uint64_t> meetings_;
  std::pmr::vector<WindowPart> windows_;    // Only number 0: buffers are named by their addresses.
  std::pmr::vector<std::uint32_t> visits_;  // By channel,
  std::pmr::vector<std::uint32_t> failed_;  // and one word.
  std::pmr::vector<MeetingPlace> place_;
  std::vector<Cargo> cargoes_;
  StraightProgram straight_;
  std::vector<Move> moves_;
  std::uint32_t brief_runs_ = 0;
  std::vector<RankBuffers> peers_;  // Where a CPU finds them.
  std::optional<Interpreter<CpuMachine>> interpreter_;
  std::string complaint_;
};

// All ranks of a voyage, and what they have in common. `voyage` outlives it.
class Convoy {
 public:
  // `in_place`: which plan a rank has.
  Convoy(const Voyage& voyage, ShmTransport& transport, const std::vector<bool>& in_place);

  const std::vector<std::unique_ptr<Sailor>>& sailors() const { return sailors_; }
  const Wires& wires() const { return wires_; }

  // [rank][operation], as teams get them.
  std::vector<std::vector<TeamCall>> calls();
  // All ranks on this CPU, one after the other: waits for nobody. Empty, or what went wrong.
  std::string sail_in_turns();
  void load(std::uint32_t operation, std::uint32_t number);
  // What is wrong with what the ranks have ended with.
  std::string complaint() const;
  // Where a rank's memory is not as it is in the other, to the bit.
  std::string differs_from(const Convoy& other) const;

 private:
  const Voyage& voyage_;
  std::pmr::memory_resource* reach_;
  Wires wires_;
  std::vector<std::unique_ptr<Sailor>> sailors_;
  std::pmr::vector<MeetingRecord> records_;
  std::pmr::vector<MeetingRecord*> by_rank_;
};

}  // namespace tutti::test
