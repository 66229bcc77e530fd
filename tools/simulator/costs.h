// Cost parameters of the simulator, in addition to those of src/model/costs.h. They are physical quantities, with one
// set for each generation of GPUs (figures.h).
//
// A message of S bytes with protocol p occupies each link of its route for
//   sent_bytes_per_byte[p] * S / (efficiency[kind] * rate of the link). A link carries one message at a time. The host
//   needs launch_us() per call and runs ahead of the devices. A series of calls, as in benchmarks, takes the longer of
//   host time and device time per call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/status.h"
#include "src/model/costs.h"
#include "src/topology/topology.h"

namespace tutti::simulator {

// Launch mode of calls: one process per device (eager), one process for several devices (eager_many), or a captured
// graph. On host memory, all modes mean a function call.
enum class LaunchMode : std::uint8_t { eager, eager_many, graph };

const char* name(LaunchMode mode);  // "eager-many"
Result<LaunchMode> parse_launch_mode(std::string_view text);

inline constexpr std::size_t kLinkKinds = 6;  // By the numbers of LinkKind.

struct Costs : tutti::Costs {
  // Time of a channel per message that a step sends or receives, in addition to step_us, which counts once per step.
  std::array<double, kProtocolCount> message_us{};
  std::array<double, kProtocolCount> received_us{};  // Time from the arrival of a message until the step begins.
  // Time in which the proxy of a rank sends a message of a channel to another host, and receives one. It limits the
  // messages per second of a port, in each direction. 0: no limit.
  double proxy_us = 0;
  double post_us = 0;          // Added to a hop of LL to another host: until a proxy sees the message.
  double launch_graph_us = 0;  // Host time per call in a graph.
  // Host time per call of one process for several devices: a constant, plus a term per device, plus a term per channel
  // of each device.
  double launch_many_us = 0, launch_device_us = 0, launch_channel_us = 0;
  std::array<double, kLinkKinds> efficiency{1, 1, 1, 1, 1, 1};
  // Simple: a step ends when its messages have passed the sender's links, since a fence waits for its stores. Only in
  // the first chunk: then all channels send at once, but later the stores of one overlap with the waits of others.
  bool awaits_stores = false;
  bool joins_copies = false;  // A channel copies several units at once; see ProgramLimits::joins_copies.
  double mapped_share = 1;    // Rate of links for accesses to peers' memory, relative to messages.
  // NVSwitches reduce data of all ranks and multicast data of one rank. With 8 ranks, links carry such transfers at
  // this fraction of their normal rate; each doubling of the ranks reduces the fraction by multicast_falls. 0: the
  // switches support neither.
  double multicast = 0;
  double multicast_falls = 0;
  double multicast_base_us = 0;  // Start time of calls by switches; replaces base_us.
  double multicast_us = 0;       // Time of a channel per chunk of each rank that folds, in addition to its bytes.
  // Links within a host are slower at the begin of a call. After t of link time, the loss is
  // unsettled_us * (1 - exp(-t / settle_us)), at most unsettled_us. Does not apply to transfers by switches.
  double unsettled_us = 0, settle_us = 1000;
  // Division of calls. A call gets one channel per channel_bytes of its data (LL: of a rank's share). A message of a
  // channel has at most chunk_bytes. It is sent in `slices` slices, or fewer if they would be shorter than
  // shortest_slice_bytes.
  std::array<double, kProtocolCount> channel_bytes{65536, 4096, 4096}, chunk_bytes{65536, 65536, 65536};
  // Replaces chunk_bytes in chains, where whole blocks move from rank to rank: the last rank has no data until the
  // first chunk has passed all others.
  std::array<double, kProtocolCount> chain_chunk_bytes{65536, 4096, 16384};
  std::array<std::uint32_t, kProtocolCount> slices{1, 1, 1};
  double shortest_slice_bytes = 65536;
  std::array<std::uint32_t, kProtocolCount> slots{4, 4,
                                                  4};  // Slots of a lane; each holds a message with all its slices.
};

// Launch of a call by one process: number of devices, and channels on each of them.
struct LaunchWork {
  std::uint32_t devices = 1;
  std::uint32_t channels = 1;
};
double launch_us(const Costs& costs, LaunchMode mode, const LaunchWork& work);

// Sets a parameter by name: "base_us.Simple", "hop_us.network.LL", "efficiency.nvlink", "max_channels". Fails with
// invalid_argument if the name is unknown or the value is out of range.
Status set_figure(Costs& costs, std::string_view name, double value);

}  // namespace tutti::simulator
