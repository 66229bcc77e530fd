// What a call costs beside the links: figures of one kind of machine, from which the tuner predicts and by which the
// simulator counts. Physical quantities, one set for all collectives, sizes and numbers of ranks.
//
// A message of S bytes, by protocol p from a channel of one rank to one of another, over links of the class c:
//   the sender's channel is busy for step_us[p] + S / channel_gbytes_per_s[p],
//   each link on its way for wire_bytes[p] * S / (efficiency[kind] * its rate), one message after the other,
//   it is there hop_us[c][p] after its last byte was sent (on top of the latencies of the links),
//   the receiver's channel is busy as the sender's was.
// A call begins launch_us[mode] + base_us[p] late, on every rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/protocol.h"
#include "src/base/status.h"
#include "src/topology/topology.h"

namespace tutti {

// What a message between two ranks goes over, by the slowest of its links.
enum class LinkClass : std::uint8_t { memory, nvlink, pci, network };
inline constexpr std::size_t kLinkClasses = 4;

// How calls are made: each process drives one device, one process drives several, or from a captured graph. Of ranks
// on host memory all are the same: a function call.
enum class LaunchMode : std::uint8_t { eager, eager_many, graph };
inline constexpr std::size_t kLaunchModes = 3;

const char* name(LaunchMode mode);  // "eager-many"
const char* name(LinkClass links);
Result<LaunchMode> parse_launch_mode(std::string_view text);

inline constexpr std::size_t kProtocolCount = 3;  // By the numbers of Protocol.
inline constexpr std::size_t kLinkKinds = 6;      // By those of LinkKind.

struct Costs {
  std::string_view name;  // "H100": whose figures.
  std::array<double, kLaunchModes> launch_us{};
  std::array<double, kProtocolCount> base_us{};
  std::array<std::array<double, kProtocolCount>, kLinkClasses> hop_us{};
  std::array<double, kProtocolCount> step_us{};
  std::array<double, kProtocolCount> channel_gbytes_per_s{};
  std::array<double, kProtocolCount> wire_bytes{1, 1, 1};  // Sent for each byte of data.
  double fold_gbytes_per_s = 0;  // What a channel adds to others beside receiving it; 0: that costs nothing more.
  double copy_gbytes_per_s = 0;  // What it copies within its rank's memory; likewise.
  std::array<double, kLinkKinds> efficiency{1, 1, 1, 1, 1, 1};
  std::uint32_t most_channels = 1;  // Of a rank that can be under way at once.
};

}  // namespace tutti
