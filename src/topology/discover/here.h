// Where on this machine something is, asked of sysfs alone: cheap enough for every rank that joins. The same of a
// topology that was read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/topology/discover/discover.h"

namespace tutti {

// As topologies name this machine; "localhost" if it has no name.
std::string host_name();

// The NUMA domain that has all of these processors; nothing: there are several, or none is known.
std::optional<std::uint32_t> domain_of_cpus(const std::vector<std::uint32_t>& cpus, const Sources& sources = {});
std::optional<std::uint32_t> domain_of_cpus(const std::vector<std::uint32_t>& cpus, const Topology& host);

struct DevicePlace {
  bool found = false;
  std::optional<std::uint32_t> domain;
  std::string port;  // The nearest of RDMA, by name; empty: there is none.
};
// Of a device on PCI by its bus id, as is_bus_id() takes it. sysfs knows no distances: near is what hangs on the same
// switches; ports that are equally near are shared out by the device's place in the order of bus ids.
DevicePlace place_of_device(const std::string& bus_id, const Sources& sources = {});

}  // namespace tutti
