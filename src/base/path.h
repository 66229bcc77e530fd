// Distance of two GPUs of a host, nearest first, as in NCCL_P2P_LEVEL.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti {

enum class Path : std::uint8_t { local, nvlink, one_switch, switches, host_bridge, system };

inline constexpr std::array<std::string_view, 6> kPathNames = {"LOC", "NVL", "PIX", "PXB", "PHB", "SYS"};

inline std::optional<Path> path_of(std::string_view name) {
  for (std::size_t i = 0; i < kPathNames.size(); ++i) {
    if (kPathNames[i] == name) return static_cast<Path>(i);
  }
  return std::nullopt;
}

}  // namespace tutti
