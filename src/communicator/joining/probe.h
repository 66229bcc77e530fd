// How fast the links between hosts are, as ranks see it who send to each other when they join.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/hosts.h"

namespace tutti {

// Ranks that have one on each host send along a ring of hosts, and receive as much: a few bytes in turns, then streams
// from one rank of each host, then from all at once. Takes 10 to 40 ms, also where links carry no more than 10 Mbit/s;
// over ways of more than some ms, as long as one message and one stream take there. The same answer on all ranks, all
// of which call it; none where one does not want it, or there is one host. Wires are as they were before. Fails on all
// ranks alike.
Result<std::optional<NetworkFigures>> probe_network(Bootstrap& bootstrap, const Hosts& hosts,
                                                    std::span<const PeerSocket> peer_sockets, bool wanted,
                                                    const Watch& watch);

// "between hosts a message takes 14.1 us, a rank sends 0.125 GB/s, a host 0.125 GB/s,
// seen in 15.9 ms".
std::string describe(const NetworkFigures& figures);

}  // namespace tutti
