// Locality of processes and devices on this machine. Reads sysfs only, so that every rank can call it when it joins.
// One overload reads a topology instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/topology/discover/discover.h"

namespace tutti {

// Host name used in topologies; "localhost" if the machine has no name.
std::string host_name();

// Returns the NUMA domain that contains all of `cpus`. Returns nothing if the CPUs span domains or no domain is known.
std::optional<std::uint32_t> domain_of_cpus(const std::vector<std::uint32_t>& cpus, const Sources& sources = {});
std::optional<std::uint32_t> domain_of_cpus(const std::vector<std::uint32_t>& cpus, const Topology& host);

// Returns the NUMA domain of a PCI device by its bus id (see is_bus_id()). Returns nothing if the bus id is invalid, or
// the firmware does not report the domain.
std::optional<std::uint32_t> domain_of_device(const std::string& bus_id, const Sources& sources = {});

}  // namespace tutti
