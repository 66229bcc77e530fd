// A system whose NVLinks have different widths and do not connect all pairs of GPUs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/topology/topology.h"

namespace tutti::test {

inline Node node(NodeKind kind, std::string name, std::uint32_t index = 0) {
  Node made;
  made.kind = kind;
  made.name = std::move(name);
  made.index = index;
  return made;
}

// Returns eight V100 in a hybrid cube mesh. A GPU has two NVLinks to each of two GPUs and one to each of two others.
// Each half has a processor.
inline Topology hybrid_cube_mesh() {
  Topology topology;
  topology.hosts = {"dgx-1"};
  std::vector<NodeId> processors, gpus;
  for (std::uint32_t i = 0; i < 2; ++i)
    processors.push_back(topology.add(node(NodeKind::numa, "numa" + std::to_string(i), i)));
  topology.connect({processors[0], processors[1], LinkKind::smp, 19.2, 0.5, 1});
  for (std::uint32_t i = 0; i < 8; ++i) {
    gpus.push_back(topology.add(node(NodeKind::gpu, "gpu" + std::to_string(i), i)));
    topology.nodes[gpus.back()].bus_id = "0000:0" + std::to_string(i + 1) + ":00.0";
    topology.connect({processors[i / 4], gpus[i], LinkKind::pci, 15.8, 0.5, 16});
  }
  const auto bricks = [&](std::uint32_t a, std::uint32_t b, std::uint32_t count) {
    topology.connect({gpus[a], gpus[b], LinkKind::nvlink, 25.0 * count, 0.5, count});
  };
  for (const std::uint32_t half : {0u, 4u}) {
    bricks(half, half + 1, 1);
    bricks(half, half + 2, 1);
    bricks(half, half + 3, 2);
    bricks(half + 1, half + 2, 2);
    bricks(half + 1, half + 3, 1);
    bricks(half + 2, half + 3, 1);
  }
  for (std::uint32_t i = 0; i < 4; ++i) bricks(i, i + 4, 2);
  return topology;
}

}  // namespace tutti::test
