// Costs that the simulator counts, beside those of src/model/costs.h. They are physical quantities, one set for each
// generation of GPUs (figures.h).
//
// A message of S bytes over links of class c keeps each link on its way busy for compressed_bytes[p] * S /
// (efficiency[kind]
// * the link's rate), one message after the other. The host needs
// launch_us() for a call and runs ahead of the devices, so calls in series, as benchmarks make them, take the longer of
// the two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/status.h"
#include "src/model/costs.h"
#include "src/topology/topology.h"

namespace tutti::simulator {

// How calls are launched: by a process for each device, by one process for several, or from a captured graph. On host
// memory all are the same: a function call.
enum class LaunchMode : std::uint8_t { eager, eager_many, graph };

const char* name(LaunchMode mode);  // "eager-many"
Result<LaunchMode> parse_launch_mode(std::string_view text);

inline constexpr std::size_t kLinkKinds = 6;  // By the numbers of LinkKind.

struct Costs : tutti::Costs {
  double launch_graph_us = 0;  // Host time for a call from a graph.
  // Host time for a call of one process for several devices: a constant, then a part for each device, and one for each
  // channel of each device.
  double launch_many_us = 0, launch_device_us = 0, launch_channel_us = 0;
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
  // How calls are cut: a channel for each so many bytes of the call (lines: of a rank's part), in messages of at most
  // so many for a channel, sent in this many slices as long as those are not shorter than shortest_slice_bytes.
  std::array<double, kProtocolCount> channel_bytes{65536, 4096, 4096}, chunk_bytes{65536, 65536, 65536};
  // Likewise, where whole blocks are handed from rank to rank: the first has to pass all before the last has anything.
  std::array<double, kProtocolCount> chain_chunk_bytes{65536, 4096, 16384};
  std::array<std::uint32_t, kProtocolCount> slices{1, 1, 1};
  double shortest_slice_bytes = 65536;
  std::array<std::uint32_t, kProtocolCount> slots{4, 4,
                                                  4};  // Slots of a lane; each holds a message with all its slices.
};

// Launch of a call by one process: channels on each of its devices.
struct LaunchWork {
  std::uint32_t devices = 1;
  std::uint32_t channels = 1;
};
double launch_us(const Costs& costs, LaunchMode mode, const LaunchWork& work);

// A figure by name: "base_us.Simple", "hop_us.network.lines", "efficiency.nvlink", "max_channels". invalid_argument
// where there is none, or the value cannot be.
Status set_figure(Costs& costs, std::string_view name, double value);

}  // namespace tutti::simulator
