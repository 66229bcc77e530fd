// Command line of `tutti simulate`, parsed and checked.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/communicator/planning/rings.h"
#include "src/plan/problem.h"
#include "tools/simulator/figures.h"
#include "tools/simulator/network.h"

namespace tutti::tool {

struct SimulateRequest {
  std::string topology;
  std::string gpu;
  simulator::Cluster cluster;  // Its topology is filled in later.
  Collective collective = Collective::all_reduce;
  std::vector<double> bytes;
  std::string algorithm;    // Empty or "all": the fastest.
  std::string protocol;     // Empty: the tuner's choice, or the fastest.
  std::string compression;  // Empty: raw.
  double max_relative_error = 0;
  DataType type = DataType::float32;  // Element type of compressed messages.
  bool like_nccl = false;             // Algorithms, protocols and loops of NCCL.
  simulator::Kernels kernels = simulator::Kernels::tutti;
  Rank root = 0;
  std::uint32_t channels = 0;  // 0: chosen by the tuner.
  std::uint32_t slots = 0;     // 0: chosen by the tuner.
  double chunk_bytes = 0;      // 0: chosen by the tuner.
  simulator::LaunchMode launch = simulator::LaunchMode::eager;
  double jitter = 0;
  std::uint64_t seed = 1;
  std::vector<std::pair<std::string, double>> figures;  // Constants of costs.h that replace those of the topology.
  bool symmetric = true;
  std::uint32_t rings = kMaxRingOrders;
  bool asks_for_rings = false;
  std::string trace;
  std::string network_choice;  // A given option that applies to the network between hosts; empty: none.
  bool json = false;
};

// argv[0] is the command's name.
Result<SimulateRequest> parse_simulate(int argc, char** argv);

}  // namespace tutti::tool
