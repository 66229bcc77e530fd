// Which CPUs are near a network interface, as the system tells in files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// The NUMA node of an interface; none: it has no device, as the loopback, or the machine has no nodes.
std::optional<int> node_of(const std::string& interface_name, const std::string& sysfs = "/sys");
// The CPUs of a node, ascending; empty: there is none such.
std::vector<std::uint32_t> cpus_of(int node, const std::string& sysfs = "/sys");
// The calling thread runs there, on CPUs in ascending order, from now on, as far as it may; nowhere there: it stays as
// it is.
void run_on(const std::vector<std::uint32_t>& cpus);

}  // namespace tutti
