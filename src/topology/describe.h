// A topology in words: the tree of each host, and how far its devices are apart.
#pragma once

#include <string>

#include "src/topology/topology.h"

namespace tutti {

std::string describe(const Topology& topology);            // The tree, and what was assumed.
std::string describe_distances(const Topology& topology);  // Between GPUs and network ports of each host: kind, GB/s.
std::string describe(const Link& link);                    // "pci x16 31.5 GB/s"
std::string short_number(double value);                    // Three digits at most.

}  // namespace tutti
