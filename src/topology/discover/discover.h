// Discovery of the topology of this machine.
//
// Every source is optional. A missing source leaves its part of the topology empty and reports the reason.
//
// Processors, NUMA domains and PCI come from hwloc if its library can be opened, otherwise from sysfs. Network ports
// come from sysfs (net, infiniband). GPU models, NVLinks and NVLink-C2C come from NVML. An NVML query that fails for
// one GPU becomes a note of the topology. The libraries stay open only during discovery.
#pragma once

#include <string>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

// Paths and libraries to read; tests override them.
struct Sources {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string hwloc = "libhwloc.so.15";  // Empty: do not use hwloc.
  std::string nvml = "libnvidia-ml.so.1";
};

struct SourceReport {
  std::string source;
  bool found = false;
  std::string words;  // Summary of the findings, or the reason why there are none.
};

struct Discovery {
  Topology topology;  // One host. Nothing is guessed; see src/topology/fill.h.
  std::vector<SourceReport> sources;
};

// Discovers this machine. Fails only if no processor can be found. The run time is that of NVML and hwloc: milliseconds
// on small machines.
Result<Discovery> discover(const Sources& sources = {});

}  // namespace tutti
