// A prepared call: all that is computed once for the calls of one shape, on which only the buffers differ.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/communicator/call/call.h"
#include "src/communicator/call/compression_counter.h"
#include "src/communicator/control/board.h"
#include "src/communicator/host/autotuning.h"
#include "src/communicator/host/connected_plans.h"
#include "src/executor/cpu/backend.h"
#include "src/executor/cpu/brief.h"
#include "src/executor/straighten.h"
#include "src/tuner/choose.h"

namespace tutti {

// Distinguishes shapes of calls.
struct CallKey {
  std::uint64_t count, shape;
  std::uint32_t forced;
  bool in_place;
  bool operator==(const CallKey&) const = default;
};

// Choices for a call that replace the prediction of the tuner.
using ChoiceNames = std::tuple<std::string_view, Protocol, std::string_view>;
struct GivenChoices {
  const Choice& lanes;
  const Choice* mapped;  // Used if all ranks show their buffers; null: buffers are not shown.
  ChoiceNames names() const { return {lanes.algorithm, lanes.protocol, mapped == nullptr ? "" : mapped->algorithm}; }
};

// Must not move, since the interpreter has pointers to it. A communicator runs one collective at a time, so one
// interpreter serves all calls of the shape.
struct PreparedCall {
  CallKey key;
  ConnectedPlan* plan = nullptr;  // Null: the call does nothing.
  Choice choice;
  Launch launch;
  StraightProgram straight;
  // Set for compressed messages. The interpreter's machine has pointers to this and the next member.
  std::optional<CompressedFold> compressed_fold;
  CallRounding rounding;
  Carried carried;                                     // Bytes that such a call sends.
  std::optional<Interpreter<CpuBackend>> interpreter;  // Set once the plan is connected.
  CallRecord record;
  bool in_place = false;
  std::int64_t in_place_distance = 0;  // In bytes, from input to output, if they are in one buffer.
  // Replaces the plan if the buffers of all ranks are mapped; null: none.
  const Algorithm* mapped_algorithm = nullptr;
  bool mapped_only = false;  // The options force the mapped algorithm.
  std::unique_ptr<PreparedCall> mapped;
  bool ran_mapped = false;  // Whether the last call was mapped.
  bool copy_input = false;  // The algorithm does not work in place and reads a copy.
  bool corrects = false;    // The algorithm reads the input with its residual added; see CallRunner.
  std::uint64_t scratch_bytes = 0;
  std::uint64_t input_bytes = 0;
  std::vector<Move> moves;  // Moves of a call that only needs its buffers; otherwise empty.
  // Set while the call is autotuned. Calls then use one of `tried`, and PreparedCalls::latest() returns none of them.
  Autotuning::Class* tuned = nullptr;
  std::map<ChoiceNames, std::unique_ptr<PreparedCall>> tried;

  // Returns whether a call has this shape. Checked for each call, against the shape of the previous call.
  bool serves(const Call& call, std::uint32_t forced) const {
    return key.count == call.count && key.shape == own_shape_of(call) && key.forced == forced &&
           (call.output - call.input == in_place_distance) == key.in_place;
  }
};

}  // namespace tutti
