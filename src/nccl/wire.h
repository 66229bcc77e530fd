// Which calls of a communicator travel in a narrower format than their tensors, as the environment asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

struct Call;

// Off unless TUTTI_NCCL_WIRE or TUTTI_NCCL_WIRE_MAX_RELATIVE_ERROR is set. The variables beside them say of which
// calls.
struct WireRule {
  std::string format;             // A name for options.wire, "raw" too, whatever TUTTI_WIRE says;
  double max_relative_error = 0;  // or instead, as in options. Neither: calls travel as they would without.
  std::size_t least_bytes = 0;    // Of the larger of a rank's buffers.
  std::uint32_t types = 0;        // Bit t: ncclDataType_t t.
  std::uint32_t kinds = 0;        // Bit k: Kind k.

  bool asks() const { return !format.empty() || max_relative_error > 0; }
  // Of reductions, only sums and averages: who asks for a minimum wants a number that some rank has.
  bool takes(const Call& call) const;
};

// For a communicator of this name, "" for one without. Fails for a value that is none.
Outcome read_wire_rule(const std::string& name, WireRule& rule);

// Another handle to the communicator, whose calls travel so; it ends with the communicator. Null where the rule asks
// for nothing.
Outcome make_narrow(tutti_comm comm, const WireRule& rule, tutti_comm& narrow);

}  // namespace tutti::nccl
