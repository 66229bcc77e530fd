// Frames that two ends of a network plugin exchange, and the address of an end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/carrier.h"
#include "transports/net_plugin/abi.h"

namespace tutti {

inline constexpr std::uint32_t kNetPluginVersion = 1;
// Frames in flight per direction, below NCCL's NCCL_NET_MAX_REQUESTS.
inline constexpr std::uint32_t kNetFrames = 8;

// A frame is a head, credits, and a part of one message or nothing.
struct NetFrameHead {
  std::uint64_t token = 0;   // The receiver's token, which other processes do not know.
  MessageHead message;       // Only if has_part.
  std::uint32_t offset = 0;  // Offset of the part in the message.
  std::uint32_t part_bytes = 0;
  std::uint32_t credits = 0;  // Number of NetCredits that follow.
  std::uint8_t has_part = 0;
  std::uint8_t is_goodbye = 0;  // The sender leaves. It sends kNetFrames of these frames and then nothing.
  std::uint16_t reserved = 0;
};
static_assert(sizeof(NetFrameHead) == 48);

struct NetCredit {
  std::uint64_t taken = 0;
  std::uint32_t lane = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(NetCredit) == 16);

inline constexpr std::size_t kNetFrameBytes = std::size_t{68} << 10;
inline constexpr std::size_t kMaxNetPartBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxNetCredits =
    (kNetFrameBytes - kMaxNetPartBytes - sizeof(NetFrameHead)) / sizeof(NetCredit);

struct NetAddress {
  std::uint32_t version = kNetPluginVersion;
  std::uint32_t frames = kNetFrames;
  std::uint64_t frame_bytes = kNetFrameBytes;
  std::uint64_t token = 0;
  alignas(16) std::array<std::byte, nccl_net::kHandleBytes> handle{};
};
static_assert(sizeof(NetAddress) == 160 && sizeof(NetAddress) <= kMaxCarrierBytes);

}  // namespace tutti
