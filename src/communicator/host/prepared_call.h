// A prepared call: all that is computed once for the calls of one shape, on which only the buffers differ.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "src/communicator/control/board.h"
#include "src/communicator/host/connected_plans.h"
#include "src/communicator/planning/call_cache.h"
#include "src/executor/cpu/backend.h"
#include "src/executor/cpu/brief.h"
#include "src/executor/straighten.h"
#include "src/tuner/choose.h"

namespace tutti {

// A plan for the calls of one shape. Must not move, since the interpreter has pointers to it. A communicator runs one
// collective at a time, so one interpreter serves all calls of the shape.
struct PlanRun {
  PlanRun(ConnectedPlan& connected, const Choice& chosen) : plan(connected), choice(chosen) {}

  ConnectedPlan& plan;
  const Choice choice;
  bool in_place = false;      // The buffers are in place.
  bool copy_input = false;    // The plan is not, and reads a copy of the input.
  bool has_residual = false;  // The plan reads the input with its residual added; see CallRunner.

  // The other members are set once the plan is connected.
  Launch launch;
  StraightProgram straight;
  // Set for compressed messages. The interpreter's backend has pointers to this and the next member.
  std::optional<CompressedFold> compressed_fold;
  CallRounding rounding;
  Carried carried;  // Bytes that such a call sends.
  std::optional<Interpreter<CpuBackend>> interpreter;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t input_bytes = 0;
  std::vector<Move> moves;  // Moves of a call that only needs its buffers; otherwise empty.
};

// A call without data, which only checks that all ranks make it.
struct WithoutData {};
// A call that runs a plan over lanes.
using OverLanes = std::unique_ptr<PlanRun>;
// A call that runs a plan in mapped memory if all ranks show their buffers, and otherwise one over lanes.
struct Mappable {
  enum class Otherwise : std::uint8_t { lanes, fails };  // fails: the options force the mapped algorithm.
  Mappable(const Algorithm& replacement, Otherwise alternative, std::unique_ptr<PlanRun> over_lanes)
      : algorithm(replacement), otherwise(alternative), lanes(std::move(over_lanes)) {}

  const Algorithm& algorithm;
  const Otherwise otherwise;
  const std::unique_ptr<PlanRun> lanes;
  std::unique_ptr<PlanRun> mapped;  // Made by the first call that is mapped.
  bool ran_mapped = false;          // Whether the last call was mapped.
};

struct PreparedCall {
  CallKey key;
  std::int64_t in_place_distance = 0;  // In bytes, from input to output, if they are in one buffer.
  CallRecord record;
  std::variant<WithoutData, OverLanes, Mappable> run;

  // Returns whether a call has this shape. Checked for each call, against the shape of the previous call.
  bool serves(const Call& call, std::uint32_t agreement_hash) const {
    return key.count == call.count && key.shape == own_shape_of(call) && key.agreement_hash == agreement_hash &&
           (call.output - call.input == in_place_distance) == key.in_place;
  }
  bool ran_mapped() const {
    const Mappable* mappable = std::get_if<Mappable>(&run);
    return mappable != nullptr && mappable->ran_mapped;
  }
};

// Returns the run of a call that consists of moves; null for all other calls.
inline PlanRun* brief_run_of(const PreparedCall& prepared) {
  const OverLanes* over_lanes = std::get_if<OverLanes>(&prepared.run);
  return over_lanes != nullptr && !(*over_lanes)->moves.empty() ? over_lanes->get() : nullptr;
}

}  // namespace tutti
