// The plans of all ranks that are simulated, as the event loop reads them: steps with bytes instead of units, and lanes
// with the links that their messages go over.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/plan/algorithm.h"
#include "src/plan/rank_mapping.h"
#include "tools/simulator/network.h"
#include "tools/simulator/symmetry.h"

namespace tutti::simulator {

// One end of what passes between two ranks, as a step has it.
enum class EndKind : std::uint8_t {
  receive,  // Sources: the next message of a lane, the next signal of a flag, memory of a peer.
  await,
  read,
  send,  // Targets.
  signal,
  write,
};

struct End {
  std::uint32_t value = 0;  // The kind, and which lane.
  End() = default;
  End(EndKind kind, std::uint32_t lane) : value(static_cast<std::uint32_t>(kind) << 29 | lane) {}
  EndKind kind() const { return static_cast<EndKind>(value >> 29); }
  std::uint32_t lane() const { return value & 0x1fffffff; }
};

struct TimedStep {
  std::uint32_t first = 0;  // First end of the step.
  std::uint16_t sources = 0, targets = 0;
  std::uint32_t units = 0;  // Units of each operand.
  bool folds = false;       // Reduces what it takes.
  // gathered: switches add the sources on the way. spread: switches distribute the result to all ranks.
  bool gathered = false, spread = false;
};

// Path from one rank to another: a lane, a flag, or memory that is accessed in place.
struct LaneLinks {
  Rank from = 0, to = 0;  // `from` is a representative, `to` is as it sees it.
  Rank distance = 0;      // The same for all images that rotations make: which of equally early messages is first.
  Route route;            // Links of representatives.
};

struct ProgramLimits {
  std::uint64_t max_steps = 100'000'000;  // Maximum steps of all simulated ranks.
  std::uint64_t max_operands =
      100'000'000;                       // Maximum operands of all these steps. Below the range of TimedStep::first.
  std::uint64_t max_lanes = 16'000'000;  // Some 250 bytes each. Below what End holds.
  std::uint64_t max_fusing = 4'000'000'000;  // Beyond this many pairs of steps they are left as they were emitted.
  std::uint64_t max_merging = 3'000'000;     // Steps beyond which stages are left as they are.
  // A chunk runs through all stages before the next begins, and steps of different stages are fused: loops as NCCL
  // writes them by hand, in which a rank of a ring rests once for each chunk, not once for each stage.
  bool one_stage = false;
  // A fold of one unit of all ranks' memory, and a store to one of all of them, are each one transfer: the switches
  // between NVLinks add on the way, or hand what comes to all. NCCL's NVLS, of plans that tell such units.
  bool multicast = false;
};

// A program has no sizes: one serves all of them.
struct Program {
  Symmetry symmetry;
  // Orders of ranks that channels take in turns: each has its part of every call. In each a rank is one of its own:
  // number order * ranks + rank.
  std::uint32_t orders = 1;
  std::vector<TimedStep> steps;
  std::vector<End> ends;
  std::vector<std::uint32_t> stages;  // [class]: steps [stages[c * (stage_count + 1) + s], ... + 1).
  std::uint32_t stage_count = 1;
  std::uint32_t units = 1;    // Per block.
  std::uint32_t longest = 0;  // Units of the longest operand, by which calls are cut; 0: there are no lanes.
  std::vector<LaneLinks> lanes;
  std::vector<std::uint32_t> sharers;  // [resource]: how many images of a representative use it; 0: none.
  std::uint64_t messages = 0;          // Messages with data of all simulated ranks, for one chunk.
  std::uint64_t sent_units = 0;        // By these.
  bool fused = false;
  bool sliceable = true;   // All that passes goes through lanes: a message can be cut wherever it goes.
  bool multicast = false;  // As the limits have it.

  Rank classes() const { return symmetry.classes(); }
};

// Fails with `internal` where what a rank sends is not what its peer receives: of a broken plan, or of a symmetry that
// does not hold after all. With `unsupported` where there are too many steps, operands or lanes, and where switches
// are to multicast that do not join all ranks, or what a rank reads or writes of its peers alone.
Result<Program> make_program(const Algorithm& algorithm, const Problem& problem, const Network& network,
                             const Symmetry& symmetry, const ProgramLimits& limits = {});

// The same where channels have these orders, of an algorithm whose plans embedded() serves.
Result<Program> make_program(const Algorithm& algorithm, const Problem& problem, const Network& network,
                             std::span<const RankMapping> orders, const ProgramLimits& limits = {});

}  // namespace tutti::simulator
