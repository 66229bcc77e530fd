// Options of one collective that its communicator's settings do not have.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::nccl {

// Values as in tutti_comm_options and tutti_tuning_options; empty or 0: those of the communicator.
struct CallOptions {
  std::string compression;
  double max_relative_error = 0;
  std::string rounding;
  std::string algorithm;
  std::uint32_t min_channels = 0, max_channels = 0;

  bool operator==(const CallOptions&) const = default;
  bool has_compression() const { return !compression.empty() || max_relative_error > 0; }
};

}  // namespace tutti::nccl
