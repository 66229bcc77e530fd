// Costs of a call beside its links: figures of one kind of machine, from which the tuner predicts. They are physical
// quantities, one set for all collectives, sizes and numbers of ranks. The simulator has more of them
// (tools/simulator/costs.h), and its own figures.
//
// A message of S bytes, by protocol p from a channel of one rank to one of another, over links of class c:
//   keeps the sender's channel busy for step_us[p] + S / channel_gbytes_per_s[p],
//   sends compressed_bytes[p] * S over each link,
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

// The class of the slowest link between two ranks.
enum class LinkClass : std::uint8_t { memory, nvlink, pci, network };
inline constexpr std::size_t kLinkClasses = 4;

inline constexpr std::size_t kProtocolCount = 3;  // By the numbers of Protocol.

struct Costs {
  std::string_view name;  // Whose figures these are: "H100".
  double launch_us = 0;   // Host time per call, with one process for each device.
  std::array<double, kProtocolCount> base_us{};
  std::array<std::array<double, kProtocolCount>, kLinkClasses> hop_us{};
  std::array<double, kProtocolCount> step_us{};
  std::array<double, kProtocolCount> channel_gbytes_per_s{};
  std::array<double, kProtocolCount> compressed_bytes{1, 1, 1};  // Bytes sent per byte of data.
  double fold_gbytes_per_s = 0;  // Rate at which a channel adds what it received; 0: at no extra cost.
  double copy_gbytes_per_s = 0;  // Rate at which a channel copies within its rank's memory; 0: at no extra cost.
  // Rates at which a channel encodes and decodes float32 numbers, by message format; 0: at no extra cost.
  std::array<double, kCompressionFormats> encode_gbytes_per_s{}, decode_gbytes_per_s{};
  std::uint32_t max_channels = 1;  // Maximum channels of a rank that run at once.
};

// Microseconds that a channel takes to encode and to decode a byte of float32 numbers. Elements of 16 bits are
// converted to float32 before, and back after, by the codecs of the formats that have these bits.
struct CodingTimes {
  double encode_us = 0, decode_us = 0;
};
CodingTimes coding_times(const Costs& costs, CompressionFormat compression, DataType type);

}  // namespace tutti
