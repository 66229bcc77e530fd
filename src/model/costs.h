// Cost parameters of a call besides its links, for one kind of machine; the tuner's predictions use them. They are
// physical quantities: one set for all collectives, sizes and numbers of ranks. The simulator has its own, more
// detailed parameters (tools/simulator/costs.h).
//
// A message of S bytes, by protocol p from a channel of one rank to one of another, over links of class c:
//   keeps the sender's channel busy for step_us[p] + S / channel_gbytes_per_s[p],
//   sends sent_bytes_per_byte[p] * S over each link,
//   arrives hop_us[c][p] after its last byte was sent, on top of the latencies of the links,
//   keeps the receiver's channel busy as long as the sender's.
// A call starts launch_us + base_us[p] late on every rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/protocol.h"
#include "src/base/types.h"
#include "src/compression/format.h"

namespace tutti {

// Class of the slowest link between two ranks.
enum class LinkClass : std::uint8_t { memory, nvlink, pci, network };
inline constexpr std::size_t kLinkClasses = 4;

inline constexpr std::size_t kProtocolCount = 3;  // Indexed by Protocol.

struct Costs {
  std::string_view name;  // Machine name: "H100".
  double launch_us = 0;   // Host time per call, with one process per device.
  std::array<double, kProtocolCount> base_us{};
  double mapped_us = 0;  // Added to base_us in calls that access peers' memory.
  std::array<std::array<double, kProtocolCount>, kLinkClasses> hop_us{};
  std::array<double, kProtocolCount> step_us{};
  std::array<double, kProtocolCount> channel_gbytes_per_s{};
  std::array<double, kProtocolCount> sent_bytes_per_byte{1, 1, 1};  // Bytes sent per byte of data.
  double fold_gbytes_per_s = 0;  // Rate at which a channel reduces received data; 0: no extra cost.
  double copy_gbytes_per_s = 0;  // Rate at which a channel copies within its rank's memory; 0: no extra cost.
  // Rates at which a channel encodes and decodes float32 values, by compression format; 0: no extra cost.
  std::array<double, kCompressionFormats> encode_gbytes_per_s{}, decode_gbytes_per_s{};
  std::uint32_t max_channels = 1;  // Maximum channels of a rank that run at once.
};

// Time in us for a channel to encode and decode one byte of float32 values. Elements of 16 bits are converted from and
// to float32 by the codecs of the formats with the same bits.
struct CodingTimes {
  double encode_us = 0, decode_us = 0;
};
CodingTimes coding_times(const Costs& costs, CompressionFormat compression, DataType type);

}  // namespace tutti
