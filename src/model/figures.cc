#include "src/model/figures.h"

namespace tutti {
namespace {

// NCCL 2.30's tuning constants (src/graph/tuning.cc): latencies of a ring's steps by protocol and link, base latencies,
// what a channel carries, and what of NVLinks is reached. In the order of Protocol: bulk is Simple, lines LL, rows
// LL128.
Costs ampere() {
  return {.name = "A100",
          .launch_us = {26, 26, 2},
          .base_us = {8.4, 6.6, 14},
          .hop_us = {{{1, 1, 1}, {3.4, 0.6, 1.9}, {5.7, 1, 2.5}, {14, 2.7, 4}}},
          .step_us = {0.3, 0.1, 0.2},
          .channel_gbytes_per_s = {24, 5.5, 20},
          .wire_bytes = {1, 2, 16.0 / 15},
          .efficiency = {0.8, 0.8, 0.8, 0.8, 0.8, 0.96},
          .most_channels = 32};
}

Costs hopper() {
  Costs costs = ampere();
  costs.name = "H100";
  costs.launch_us = {5, 15, 2};
  costs.channel_gbytes_per_s = {38.7, 8.8, 36.7};
  costs.efficiency[static_cast<std::size_t>(LinkKind::nvlink)] = 20.6 / 25;
  return costs;
}

Costs blackwell() {
  Costs costs = hopper();
  costs.name = "B200";
  costs.channel_gbytes_per_s = {70, 17.6, 40};
  return costs;
}

// One channel, a thread: decision 30. Of two near cores of the machine on which the project is measured.
Costs processor() {
  Costs costs;
  costs.name = "host memory";
  costs.base_us = {0.3, 0.2, 0.3};
  costs.hop_us = {{{0.15, 0.1, 0.15}, {0.15, 0.1, 0.15}, {1, 1, 1}, {15, 15, 15}}};
  costs.step_us = {0.05, 0.05, 0.05};
  costs.channel_gbytes_per_s = {8, 4, 8};
  costs.wire_bytes = {1, 8.0 / 7, 1};
  return costs;
}

}  // namespace

Result<Costs> costs_of(const Topology& topology) {
  std::uint32_t sm = 0;
  bool gpus = false;
  for (const Node& node : topology.nodes) {
    if (node.kind != NodeKind::gpu) continue;
    if (gpus && node.sm != sm) return invalid_argument("GPUs of several kinds: there are no figures for a mixture");
    gpus = true;
    sm = node.sm;
  }
  if (!gpus) return processor();
  if (sm == 0) return invalid_argument("nobody said what the GPUs are: name their model with --gpu");
  if (sm >= 100) return blackwell();
  return sm >= 90 ? hopper() : ampere();
}

}  // namespace tutti
