// Location of a rank within its host, sent to all ranks when they join.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/instructions.h"

namespace tutti {

inline constexpr std::uint32_t kNoDomain = ~0u;
inline constexpr std::uint32_t kLocationVersion = 3;

// Fixed-width plain data, sent over the network.
struct Location {
  std::uint32_t version = kLocationVersion;
  std::uint32_t domain =
      kNoDomain;  // The NUMA domain of its GPU, else of all processors that it may run on: its number.
  std::uint32_t wants_topology = 0;  // 1: the ranks shall merge their host topologies.
  std::uint32_t instructions = 0;    // number_of() of its CPU's instruction set; 0: unknown.
  std::array<char, 24> gpu{};        // PCI address: "0000:a4:00.0"; empty: buffers are in host memory.

  bool operator==(const Location&) const = default;
};
static_assert(sizeof(Location) == 40);

void set_gpu(Location& location, std::string_view bus_id);
// Number of an instruction set in a Location, from 1.
constexpr std::uint32_t number_of(Instructions instructions) { return 1 + static_cast<std::uint32_t>(instructions); }

std::string gpu_of(const Location& location);

// Validates a location from a peer. Returns an empty one if its version, domain or GPU is invalid.
Location validated(const Location& received);

}  // namespace tutti
