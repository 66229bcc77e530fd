// A topology in words: the tree of each host, and how far its devices are apart.
#pragma once

#include <string>

#include "src/topology/topology.h"
#include "src/topology/ways.h"

namespace tutti {

std::string describe(const Topology& topology);            // The tree, and what was assumed.
std::string describe_distances(const Topology& topology);  // Between GPUs and network ports of each host: kind, GB/s.
std::string describe(const Link& link);                    // "pci x16 31.5 GB/s"
// "NV 450", of a way between these: to a network port, or from it, no more than it sends.
std::string describe(const Topology& topology, const Way& found, NodeId from, NodeId to);
std::string short_number(double value);  // Three digits at most.

}  // namespace tutti
