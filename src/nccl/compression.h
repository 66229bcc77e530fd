// Which calls of a communicator travel in a narrower format than their tensors, as the environment asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

struct Call;

// Off unless TUTTI_NCCL_COMPRESS or TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR is set. The variables beside them say of
// which calls.
struct CompressionRule {
  std::string format;             // A name for options.compression, "raw" too, whatever TUTTI_COMPRESS says;
  double max_relative_error = 0;  // or instead, as in options. Neither: calls travel as they would without.
  std::size_t min_bytes = 0;      // Minimum size of the larger of a rank's buffers.
  std::uint32_t types = 0;        // Bit t: ncclDataType_t t.
  std::uint32_t kinds = 0;        // Bit k: Kind k.

  bool asks() const { return !format.empty() || max_relative_error > 0; }
  // True for calls to compress. Reductions: only sums and averages, because a minimum must be a value that some
  // rank passed.
  bool takes(const Call& call) const;
};

// For a communicator of this name, "" for one without. Fails for a value that is none.
Outcome read_compression_rule(const std::string& name, CompressionRule& rule);

// Another handle to the communicator, whose calls travel so; it ends with the communicator. Null where the rule asks
// for nothing.
Outcome make_compressed(tutti_comm comm, const CompressionRule& rule, tutti_comm& compressed);

}  // namespace tutti::nccl
