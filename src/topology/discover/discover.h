// The topology of this machine. Each source is optional: what it gives is left out where it is not there, and it says
// why.
//
// Processors, NUMA domains and PCI come from hwloc, if its library is there, else from sysfs; network ports from sysfs
// (net, infiniband), what GPUs are and where their NVLinks lead, those of C2C too, from NVML. What NVML fails to tell
// of a GPU is a note of the topology. Libraries are opened for as long as this takes.
#pragma once

#include <string>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

// Where to look.
struct Sources {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string hwloc = "libhwloc.so.15";  // Empty: not to be asked.
  std::string nvml = "libnvidia-ml.so.1";
};

struct SourceReport {
  std::string source;
  bool found = false;
  std::string words;  // What it gave, or why nothing.
};

struct Discovery {
  Topology topology;  // Of one host, without guesses (src/topology/fill.h).
  std::vector<SourceReport> sources;
};

// Takes as long as NVML and hwloc take to look: milliseconds, on small machines. Fails where nobody knows of a
// processor.
Result<Discovery> discover(const Sources& sources = {});

}  // namespace tutti
