// Measurement of the links between hosts, by messages that ranks send to each other when they join.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/call/hosts.h"

namespace tutti {

// Measures the network. Ranks with a counterpart on each host send and receive along a ring of hosts. They send single
// small messages, then streams from one rank of each host, then streams from all of them. Takes 10 to 40 ms, even on
// links of 10 Mbit/s. If the latency exceeds some ms, takes as long as one message and one stream.
//
// All ranks must call this and get the same result. Returns nullopt if `wanted` is false on a rank, or if there is only
// one host. The connections can be used normally afterwards. A failure is reported on all ranks.
Result<std::optional<NetworkFigures>> probe_network(Bootstrap& bootstrap, const Hosts& hosts,
                                                    std::span<const PeerSocket> peer_sockets, bool wanted,
                                                    const Watch& watch);

// Example: "between hosts a message takes 14.1 us, a rank sends 0.125 GB/s, a host 0.125 GB/s, seen in 15.9 ms".
std::string describe(const NetworkFigures& figures);

}  // namespace tutti
