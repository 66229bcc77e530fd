// Configuration of a communicator: an ncclConfig_t of any version, checked and completed.
#pragma once

#include <cstdint>
#include <string>

#include "src/nccl/abi.h"
#include "src/nccl/compression.h"
#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

// Non-blocking: calls return ncclInProgress at once, and ncclCommGetAsyncError reports when they are done.
enum class Mode { blocking, non_blocking };

struct Settings {
  Mode mode = Mode::blocking;
  std::string name;
  CompressionRule compression;
  // Bounds on channels (minCTAs and maxCTAs), and literals: the transport (netName), and copy engines (CTAPolicy).
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  std::uint32_t max_ctas = 0;       // maxCTAs, 0: not set. CTAPolicy sets the bound in `tuning` then.
  std::uint32_t traffic_class = 0;  // 0: that of the environment.
  std::string memory = "host";      // Memory of the buffers, as in options.memory of tutti.h; see memory.h.
};

// Options of one collective that its communicator's settings do not have. Values as in tutti_comm_options and
// tutti_tuning_options; empty or 0: those of the communicator.
struct CallOptions {
  std::string compression;
  double max_relative_error = 0;
  std::string rounding;
  std::string algorithm;
  std::uint32_t min_channels = 0, max_channels = 0;

  bool operator==(const CallOptions&) const = default;
  bool has_compression() const { return !compression.empty() || max_relative_error > 0; }
};

// Bits of CTAPolicy. kFewCtas requests at most kMaxFewCtas thread blocks, unless there are other bounds. kZeroCtas
// requests calls without thread blocks where possible, by its algorithm, and overrides kFewCtas.
inline constexpr int kFewCtas = 1, kZeroCtas = 2;
inline constexpr int kMaxFewCtas = 24;  // More are predicted to make calls on H100 at most 5 % faster.
inline constexpr const char* kZeroCtaAlgorithm = "copy_engines";

// Converts `config`; null: defaults. Unknown fields of later versions are ignored. Most fields about GPUs and
// networks are checked, but have no effect.
Outcome read_config(const ncclConfig_t* config, Settings& settings);

}  // namespace tutti::nccl
