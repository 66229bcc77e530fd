// Distance of two GPUs of a host, nearest first, as in NCCL_P2P_LEVEL.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti {

enum class P2pLevel : std::uint8_t {
  loc,  // The same GPU.
  nvl,  // NVLink.
  pix,  // One PCIe switch.
  pxb,  // Several PCIe switches.
  phb,  // The host bridge of a CPU.
  sys,  // The interconnect of CPUs.
};

inline constexpr std::array<std::string_view, 6> kP2pLevelNames = {"LOC", "NVL", "PIX", "PXB", "PHB", "SYS"};

inline std::optional<P2pLevel> p2p_level_of(std::string_view name) {
  for (std::size_t i = 0; i < kP2pLevelNames.size(); ++i) {
    if (kP2pLevelNames[i] == name) return static_cast<P2pLevel>(i);
  }
  return std::nullopt;
}

}  // namespace tutti
