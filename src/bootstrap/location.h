// Where a rank is on its host, as all ranks are told when they join.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/instructions.h"

namespace tutti {

inline constexpr std::uint32_t kNoDomain = ~0u;
inline constexpr std::uint32_t kLocationVersion = 2;

// Fixed-width plain data: it travels.
struct Location {
  std::uint32_t version = kLocationVersion;
  std::uint32_t domain =
      kNoDomain;  // The NUMA domain of its GPU, else of all processors that it may run on: its number.
  std::uint32_t wants_topology = 0;  // 1: the ranks are to merge what they know of their hosts.
  std::uint32_t instructions = 0;    // Its CPU's, as number_of() has them; 0: it did not say.
  std::array<char, 24> gpu{};        // On PCI: "0000:a4:00.0"; empty: its buffers lie in host memory.
  std::array<char, 24> port{};  // The nearest one of RDMA: "mlx5_3"; empty: there is none, or it was not looked for.

  bool operator==(const Location&) const = default;
};
static_assert(sizeof(Location) == 64);

void set_gpu(Location& location, std::string_view bus_id);
void set_port(Location& location, std::string_view name);
// Of a location; 1 and more.
constexpr std::uint32_t number_of(Instructions instructions) { return 1 + static_cast<std::uint32_t>(instructions); }

std::string gpu_of(const Location& location);
std::string port_of(const Location& location);

// As a peer sent it: of another version, or with domains and names that cannot be, it says nothing.
Location sane(const Location& received);

}  // namespace tutti
