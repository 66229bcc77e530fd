// Text output of a topology: the device tree of each host, and the distances between its devices.
#pragma once

#include <string>

#include "src/topology/paths.h"
#include "src/topology/topology.h"

namespace tutti {

std::string describe(const Topology& topology);            // The tree, then the notes (assumptions made).
std::string describe_distances(const Topology& topology);  // Matrix of GPUs and NICs per host: path kind and GB/s.
std::string describe(const Link& link);                    // "pci x16 31.5 GB/s"
// For example "NV 450". If an end is a network port, the bandwidth is capped at the port's.
std::string describe(const Topology& topology, const NodePath& found, NodeId from, NodeId to);
std::string short_number(double value);  // Up to three significant digits.

}  // namespace tutti
