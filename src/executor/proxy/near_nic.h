// CPUs close to a network interface, by sysfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// NUMA node of an interface. Nothing if it has no device (loopback) or the machine has no NUMA nodes.
std::optional<int> node_of(const std::string& interface_name, const std::string& sysfs = "/sys");
// CPUs of a NUMA node, ascending; empty if the node does not exist.
std::vector<std::uint32_t> cpus_of(int node, const std::string& sysfs = "/sys");
// Binds the calling thread to those of `cpus` (ascending) that it may use. No effect if there are none.
void run_on(const std::vector<std::uint32_t>& cpus);

}  // namespace tutti
