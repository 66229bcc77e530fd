// Selection of the calls whose messages are compressed, from the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

struct Call;

// Compression is off unless TUTTI_NCCL_COMPRESS or TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR is set. The other variables
// select calls.
struct CompressionRule {
  std::string format;             // Value for options.compression, or "raw"; overrides TUTTI_COMPRESS.
  double max_relative_error = 0;  // Alternative to `format`, as in options; 0: none.
  std::size_t min_bytes = 0;      // Minimum size of the larger of a rank's buffers.
  std::uint32_t types = 0;        // Bit t: ncclDataType_t t.
  std::uint32_t kinds = 0;        // Bit k: Kind k.

  bool is_requested() const { return !format.empty() || max_relative_error > 0; }
  // True for calls to compress. Among reductions, only sums and averages qualify: a minimum must be a value that some
  // rank passed.
  bool takes(const Call& call) const;
};

// Reads the rule for a communicator with this name; "": unnamed. Fails if a variable has an invalid value.
Outcome read_compression_rule(const std::string& name, CompressionRule& rule);

// Creates a second handle to `comm` whose calls are compressed. The handle ends with `comm`. Null if the rule selects
// nothing.
Outcome make_compressed(tutti_comm comm, const CompressionRule& rule, tutti_comm& compressed);

}  // namespace tutti::nccl
