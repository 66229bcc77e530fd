// Plans of all simulated ranks in the form that the event loop reads: steps with the number of units of their operands,
// and lanes with the links that their messages use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/plan/algorithm.h"
#include "src/plan/rank_mapping.h"
#include "tools/simulator/network.h"
#include "tools/simulator/symmetry.h"

namespace tutti::simulator {

// Operand of a step that communicates with another rank.
enum class EndKind : std::uint8_t {
  receive,  // Source: the next message of a lane.
  await,    // Source: the next signal of a flag.
  read,     // Source: memory of a peer.
  send,     // Targets, in the order of the sources.
  signal,
  write,
};

struct End {
  std::uint32_t value = 0;  // Kind and index of the lane.
  End() = default;
  End(EndKind kind, std::uint32_t lane) : value(static_cast<std::uint32_t>(kind) << 29 | lane) {}
  EndKind kind() const { return static_cast<EndKind>(value >> 29); }
  std::uint32_t lane() const { return value & 0x1fffffff; }
};

struct TimedStep {
  std::uint32_t first = 0;  // First end of the step.
  std::uint16_t sources = 0, targets = 0;
  std::uint32_t units = 0;  // Units of each operand.
  bool folds = false;       // Reduces several sources.
  // gathered: switches reduce the sources in transit. spread: switches distribute the result to all ranks.
  bool gathered = false, spread = false;
};

// Path from one rank to another: a lane, a flag, or memory that is accessed in place.
struct LaneLinks {
  Rank from = 0, to = 0;  // `from` is a representative; `to` is its peer in the representative's frame.
  Rank distance = 0;      // Orders simultaneous messages. Equal for all images under rotations.
  Route route;            // Links of representatives.
};

struct ProgramLimits {
  std::uint64_t max_steps = 100'000'000;  // Maximum steps of all simulated ranks.
  std::uint64_t max_operands =
      100'000'000;                       // Maximum operands of all these steps. Below the range of TimedStep::first.
  std::uint64_t max_lanes = 16'000'000;  // Some 250 bytes per lane. Below the range of End.
  std::uint64_t max_fusing = 4'000'000'000;  // Pairs of steps beyond which steps are not fused.
  std::uint64_t max_merging = 3'000'000;     // Steps beyond which stages are not fused.
  // A chunk runs through all stages before the next begins, and steps of different stages are fused, like in NCCL's
  // loops: a rank of a ring waits once for each chunk, not once for each stage.
  bool one_stage = false;
  // Emulates NVLS. A fold of the same unit of all ranks' memory is one transfer, since NVSwitches reduce in transit. A
  // store to the same unit of all ranks is one transfer, since NVSwitches distribute it.
  bool multicast = false;
  // Adjacent steps of a stage that only copy units of a rank's own memory, or units of peers' scratch to it, or only
  // send or only receive such units, are one step, as in Tutti's GPU kernel.
  bool joins_copies = false;
  // The scratch of a chunk is a position of the staging ring, which limits chunks.
  bool in_ring = false;
};

// Independent of the size of a call: one program serves all sizes.
struct Program {
  Symmetry symmetry;
  // Number of rank orders that channels use in rotation. Each order does a share of every call. A rank has the number
  // order * ranks + rank in each order, and is simulated once per order.
  std::uint32_t orders = 1;
  std::vector<TimedStep> steps;
  std::vector<End> ends;
  std::vector<std::uint32_t>
      stages;  // Steps of stage s of class c: from stages[c * (stage_count + 1) + s] to the next.
  std::uint32_t stage_count = 1;
  std::uint32_t units = 1;  // Units per block.
  // Units of the longest operand, or of scratch in a position of the staging ring, which determines chunks; 0: there
  // are no lanes.
  std::uint32_t longest = 0;
  std::uint32_t message_units = 0;  // Units of the longest message; 0: there is none.
  std::vector<LaneLinks> lanes;
  std::vector<std::uint32_t> sharers;  // [resource]: number of images of a representative that use it; 0: unused.
  std::uint64_t messages = 0;          // Messages with data of all simulated ranks, for one chunk.
  bool fused = false;
  bool sliceable = true;   // All data moves through lanes, so steps and messages can be divided into parts.
  bool multicast = false;  // ProgramLimits::multicast.
  // The plan names memory of all ranks, which switches access. If that is scratch, copies to and from it are steps, and
  // chunks are as long as the scratch of a channel. Otherwise steps by switches include copies, as in NCCL.
  bool names_all = false;

  Rank classes() const { return symmetry.classes(); }
};

// Returns whether steps of the plans access memory of all ranks, or of all ranks of a host, by one operand; see all().
bool names_all(const Algorithm& algorithm, const Problem& problem);
// The same for all ranks of a host.
bool names_hosts(const Algorithm& algorithm, const Problem& problem);

// Emits and compiles the plans of the representatives of all classes. Fails with `internal` if a rank sends other data
// than its peer receives: the plan is wrong, or the symmetry does not hold. Fails with `unsupported` if there are too
// many steps, operands or lanes. With `multicast`, fails with `unsupported` if NVSwitches do not connect all ranks, or
// if ranks exchange messages or access single peers.
Result<Program> make_program(const Algorithm& algorithm, const Problem& problem, const Network& network,
                             const Symmetry& symmetry, const ProgramLimits& limits);

// Like the function above, for channels with these rank orders. The algorithm must support logical() of each order.
Result<Program> make_program(const Algorithm& algorithm, const Problem& problem, const Network& network,
                             std::span<const RankMapping> orders, const ProgramLimits& limits);

}  // namespace tutti::simulator
