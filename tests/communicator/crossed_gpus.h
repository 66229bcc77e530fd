// A host with four GPUs whose NVLinks form the ring 0 2 1 3.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/communicator/call/hosts.h"

namespace tutti::test {

inline std::string bus_of(std::uint32_t gpu) { return "0000:0" + std::to_string(gpu + 1) + ":00.0"; }

inline Topology crossed_gpus() {
  Topology topology;
  topology.hosts = {"crossed"};
  Node processor;
  processor.name = "numa0";
  const NodeId numa = topology.add(processor);
  std::vector<NodeId> gpus;
  for (std::uint32_t i = 0; i < 4; ++i) {
    Node gpu;
    gpu.kind = NodeKind::gpu;
    gpu.name = "gpu" + std::to_string(i);
    gpu.index = i;
    gpu.bus_id = bus_of(i);
    gpus.push_back(topology.add(gpu));
    topology.connect({numa, gpus.back(), LinkKind::pci, 15.8, 0.5, 16});
  }
  for (const auto& [a, b] : {std::pair(0, 2), std::pair(2, 1), std::pair(1, 3), std::pair(3, 0)})
    topology.connect({gpus[a], gpus[b], LinkKind::nvlink, 25, 0.5, 1});
  return topology;
}

// Returns hosts on which the r-th rank uses GPU r, with PCI address bus_of(r).
inline Hosts on_gpus_of(const Topology& topology, const std::vector<Rank>& host_of) {
  Hosts hosts(host_of);
  std::vector<Location> locations(host_of.size());
  std::vector<std::uint32_t> next(host_of.size());
  TopologyMerger merger;
  for (Rank rank = 0; rank < host_of.size(); ++rank) {
    if (hosts.first_rank_of_host(rank) == rank) merger.add("host" + std::to_string(rank), topology);
    set_gpu(locations[rank], bus_of(next[hosts.first_rank_of_host(rank)]++));
  }
  hosts.place(std::move(locations));
  hosts.set_topology(std::make_shared<const MergedTopology>(merger.take()));
  return hosts;
}

inline Hosts on_crossed_gpus(const std::vector<Rank>& host_of) { return on_gpus_of(crossed_gpus(), host_of); }

}  // namespace tutti::test
