// NCCL's times of calls: published ones, and simulated ones (`tutti simulate --like nccl --launch graph`).
#pragma once

#include <map>
#include <string_view>

#include "tools/tutti/call_model.h"

namespace tutti::tool {

struct PublishedTime {
  std::uint32_t sm = 0;     // Compute capability of the GPUs, of which those of a host are on NVSwitches.
  std::uint32_t hosts = 1;  // Several: each GPU has a port of 400 Gbit/s.
  Rank ranks = 0;
  double bytes = 0;
  double us = 0;  // All-reduce, chosen by NCCL.
  std::string_view source;
};

// Returns the published time of a call, or null if there is none.
const PublishedTime* published_nccl_time(const simulator::Network& network, Collective collective, double bytes);

class NcclTimes {
 public:
  // `model` must outlive the object.
  explicit NcclTimes(const CallModel& model);
  // Returns the simulated time of a call in a graph. Fails with `unsupported` if NCCL's choice is not modeled.
  Result<double> simulate(const Problem& problem, double bytes);

 private:
  Result<const simulator::Simulation*> simulation_of(std::string_view algorithm, const Problem& problem);

  simulator::Costs costs_;
  CallModel model_;
  std::map<std::string_view, simulator::Simulation> simulations_;
};

}  // namespace tutti::tool
