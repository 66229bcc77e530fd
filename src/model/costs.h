// What a call costs beside the links: figures of one kind of machine, from which the tuner predicts and by which the
// simulator counts. Physical quantities, one set for all collectives, sizes and numbers of ranks. Of host memory there
// are two sets: the tuner's, fitted to what was measured (machine_of_hosts), and the simulator's, which are rough
// (costs_of).
//
// A message of S bytes, by protocol p from a channel of one rank to one of another, over links of the class c:
//   the sender's channel is busy for step_us[p] + S / channel_gbytes_per_s[p],
//   each link on its way for compressed_bytes[p] * S / (efficiency[kind] * its rate), one message after the other
//     (but see request_bytes and interleaved_bytes),
//   it is there hop_us[c][p] after its last byte was sent (on top of the latencies of the links),
//   the receiver's channel is busy as the sender's was.
// A call begins base_us[p] late, on every rank. Its host needs launch_us() for it, and is ahead of the devices: calls
// that follow each other, as benchmarks make them, take the longer of the two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/protocol.h"
#include "src/base/status.h"
#include "src/compression/format.h"
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
  std::string_view name;                         // "H100": whose figures.
  std::array<double, kLaunchModes> launch_us{};  // What a host needs for a call; of eager_many for the process alone,
  double launch_device_us = 0;                   // then this for each of its devices,
  double launch_channel_us = 0;                  // and for each channel of each device.
  double launch_peer_us = 0;  // Instead of channels, for each peer of each device, where each gets bytes of its own.
  std::array<double, kProtocolCount> base_us{};
  std::array<std::array<double, kProtocolCount>, kLinkClasses> hop_us{};
  // Longer messages have longer hops, up to ramp_us more from ramp_bytes on: until a port that fetches from a device's
  // memory has as much under way as it can.
  std::array<double, kLinkClasses> ramp_us{}, ramp_bytes{};
  // More of a hop where what comes is reduced: a host that drives the network hands it to the device, and waits.
  std::array<double, kLinkClasses> fold_us{};
  // Ports that a rank uses together take a message in requests of so many bytes, each port so many of them in turn: a
  // short one goes over one port alone. 0: each port has its share of any message.
  double request_bytes = 0;
  std::uint32_t requests_in_turn = 1;
  // Over a network a message shares the links with the one before from the same rank to the same, as long as both have
  // no more than this under way: requests are dealt out to as many queue pairs. 0: one goes after the other.
  double interleaved_bytes = 0;
  double lead_us = 0;  // By which the one before is there first all the same.
  // Other than 0: what messages of this class carry without reducing it goes from where it is to where it belongs, and
  // no channel copies it.
  std::array<double, kLinkClasses> direct{};
  std::array<double, kProtocolCount> step_us{};
  std::array<double, kProtocolCount> channel_gbytes_per_s{};
  std::array<double, kProtocolCount> compressed_bytes{1, 1, 1};  // Sent for each byte of data.
  double fold_gbytes_per_s = 0;  // What a channel adds to others beside receiving it; 0: that costs nothing more.
  double copy_gbytes_per_s = 0;  // What it copies within its rank's memory; likewise.
  // What it encodes and decodes of numbers in float32, by the format that messages are in; likewise.
  std::array<double, kCompressionFormats> encode_gbytes_per_s{}, decode_gbytes_per_s{};
  std::array<double, kLinkKinds> efficiency{1, 1, 1, 1, 1, 1};
  // Switches between NVLinks add what all ranks hold, and hand to all what one stores: links carry such transfers at
  // this part of the rate of others if ranks are 8, and at multicast_falls less with each doubling of them. 0: the
  // switches can do neither.
  double multicast = 0;
  double multicast_falls = 0;
  double multicast_base_us = 0;  // A call of them begins so late, instead of base_us,
  double multicast_us = 0;       // and a channel needs so long for a chunk of each rank that folds, beside its bytes.
  // Links within a host carry less while a call is young: what is lost in the end, of calls that keep them busy for
  // much longer than settle_us. After t of it: unsettled_us (1 - exp(-t / settle_us)). Not where switches add.
  double unsettled_us = 0, settle_us = 1000;
  std::uint32_t max_channels = 1;  // Of a rank that can be under way at once.
  // How calls are cut: a channel for each so many bytes of the call (lines: of a rank's part), in messages of at most
  // so many for a channel, sent in this many slices as long as those are not shorter than shortest_slice_bytes.
  std::array<double, kProtocolCount> channel_bytes{65536, 4096, 4096}, chunk_bytes{65536, 65536, 65536};
  // Likewise, where whole blocks are handed from rank to rank: the first has to pass all before the last has anything.
  std::array<double, kProtocolCount> chain_chunk_bytes{65536, 4096, 16384};
  std::array<std::uint32_t, kProtocolCount> slices{1, 1, 1};
  double shortest_slice_bytes = 65536;
  std::array<std::uint32_t, kProtocolCount> slots{4, 4, 4};  // Of a lane, each for a message with all its slices.
};

// What a process prepares for a call: on so many devices, and on each of them either channels of one collective, or
// messages to and from peers, as those of an all-to-all are.
struct LaunchWork {
  std::uint32_t devices = 1;
  std::uint32_t channels = 1;
  std::uint32_t peers = 0;
};
double launch_us(const Costs& costs, LaunchMode mode, const LaunchWork& work);

// What a channel takes to encode and to decode a byte of numbers in float32, in microseconds. Elements of 16 bits are
// made float32 before, and 16 bits again after, by the codecs of the formats that have these bits.
struct CodingTimes {
  double encode_us = 0, decode_us = 0;
};
CodingTimes coding_times(const Costs& costs, CompressionFormat compression, DataType type);

// A figure by name: "base_us.Simple", "hop_us.network.LL", "efficiency.nvlink", "max_channels". invalid_argument
// where there is none, or the value cannot be.
Status set_figure(Costs& costs, std::string_view name, double value);

}  // namespace tutti
