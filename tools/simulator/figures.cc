#include "tools/simulator/figures.h"

#include <utility>

#include "src/model/gpu_kernel.h"
#include "src/model/machine.h"

namespace tutti::simulator {
namespace {

// Figures without a stated origin are fitted by perf/simulator/fit.py to the tables in tests/simulator/tables. Arrays
// by protocol are in the order of Protocol: Simple, LL, LL128.

// Common costs of all GPUs; the tables were measured with NCCL.
Costs nccl() {
  Costs costs;
  costs.launch_us = 8;  // An estimate, below the time that devices take.
  costs.launch_many_us = 13.4;
  costs.launch_graph_us = 2;
  costs.step_us = {0.5, 0.1, 0.2};
  costs.sent_bytes_per_byte = {1, 2, 128.0 / 120};   // LL has 8 bytes of data in 16, LL128 120 in 128.
  costs.efficiency = {1, 0.8, 0.8, 0.8, 0.8, 0.94};  // Network: 46 to 48 of 50 GB/s, says NVIDIA (nccl-tests, 290).
  costs.unsettled_us = 68;                           // Fitted to H100; fits A100 equally well.
  costs.settle_us = 493;
  costs.multicast_base_us = 8.4;  // NCCL's constant for Simple (src/graph/tuning.cc).
  costs.multicast_us = 1.5;       // Fits of 4 and 8 H100 and of 8 and 72 GB200 agree.
  costs.max_channels = 24;
  costs.channel_bytes = {1 << 15, 1 << 12, 1 << 12};  // 512 threads with 64 or 8 bytes each (NCCL).
  costs.chunk_bytes = {1 << 20, 1 << 18, 1 << 19};
  costs.chain_chunk_bytes = {1 << 16, 1 << 12, 1 << 14};
  costs.slices = {2, 1, 1};  // Slices of NCCL's rings.
  costs.shortest_slice_bytes = 1 << 15;
  costs.slots = {4, 8, 8};  // Slots of lanes. Simple: Tutti's; LL and LL128: NCCL's.
  return costs;
}

// NVLinks: time of a hop in addition to the latencies of the links. Network: NCCL's constants of a step of a tree (14,
// 5 and 8.5 us in src/graph/tuning.cc) minus the latencies of ports and switches.
constexpr std::array<std::array<double, kProtocolCount>, kLinkClasses> kHopsByProxy = {
    {{1, 1, 1}, {0.3, 0.1, 0.1}, {2, 1, 1.5}, {12.5, 3.5, 7}}};

// Fitted to 8 A100-SXM4 with NCCL 2.8 to 2.10, which needed much host time to prepare a channel.
Costs ampere() {
  Costs costs = nccl();
  costs.name = "A100";
  costs.launch_device_us = 2.65;
  costs.launch_channel_us = 0.2;
  costs.base_us = {93, 7, 79};
  costs.hop_us = kHopsByProxy;
  costs.channel_gbytes_per_s = {24, 3.9, 20};  // NCCL's limits of a channel; LL: 87.7 GB/s / 24 channels.
  costs.efficiency[static_cast<std::size_t>(LinkKind::nvlink)] = 0.792;
  return costs;
}

// Fitted to 4 H100-SXM with NCCL 2.18.
Costs hopper() {
  Costs costs = nccl();
  costs.name = "H100";
  costs.launch_device_us = 2.45;
  costs.launch_channel_us = 0.03;
  costs.base_us = {24, 7, 17};
  costs.hop_us = kHopsByProxy;
  // Simple: a thread block of NCCL's symmetric kernels (src/sym_kernels.cc). LL128: NCCL's limit of a channel.
  costs.channel_gbytes_per_s = {65, 8.62, 36.7};
  costs.efficiency[static_cast<std::size_t>(LinkKind::nvlink)] = kNvlinkEfficiency;
  costs.multicast = 0.835;
  costs.multicast_falls = 0.03;
  return costs;
}

// B200 and GB200. Costs of the network are those of the other generations.
Costs blackwell() {
  Costs costs = hopper();
  costs.name = "B200";
  costs.base_us = {30, 7, 7.8};
  costs.channel_gbytes_per_s = {55, 12, 55};  // Block of NCCL's symmetric kernels; LL: 282 GB/s / 24 channels.
  costs.efficiency[static_cast<std::size_t>(LinkKind::nvlink)] = 0.778;
  costs.multicast = 0.774;
  return costs;
}

// Replaces the costs of NCCL's kernels by those of Tutti's. A hop is the time until a peer sees a flag, as for NCCL.
Costs with_kernels_of_tutti(Costs costs) {
  constexpr std::uint32_t kThreadBlocks = 64;  // Maximum of a call (src/communicator/peers/rank_device_memory.h).
  constexpr auto kSimple = static_cast<std::size_t>(Protocol::simple);
  const GpuKernel& kernel = gpu_kernel();
  set_gpu_kernel(costs);
  // Steps of LL are joined, so that their instructions count where data arrive.
  costs.step_us = {kernel.step_us + kernel.instructions_us, 0, 0};
  costs.received_us = {0, kernel.ll_instructions_us, kernel.instructions_us};
  costs.message_us.fill(kernel.ll_message_us);
  costs.message_us[kSimple] = kernel.simple_message_us;
  costs.awaits_stores = costs.joins_copies = true;
  costs.mapped_share = kernel.mapped_share;
  costs.proxy_us = kernel.proxy_us;
  costs.post_us = kernel.post_us;
  costs.max_channels = kThreadBlocks;
  costs.slices = {1, 1, 1};
  costs.slots = {4, 4, 4};
  return costs;
}

// Costs of one channel, which is one thread. Rough figures for two cores close to each other, not fitted. The tuner's
// fitted figures (machine.cc) include folds, copies, stalls and hand-overs, which the simulator does not model.
Costs processor() {
  Costs costs;
  costs.name = "host memory (rough)";
  costs.base_us = {0.3, 0.2, 0.3};
  costs.hop_us = {{{0.15, 0.1, 0.15}, {0.15, 0.1, 0.15}, {1, 1, 1}, {15, 15, 15}}};
  costs.step_us = {0.05, 0.05, 0.05};
  costs.channel_gbytes_per_s = {8, 4, 8};
  costs.sent_bytes_per_byte = {1, 8.0 / 7, 1};
  set_coding_rates(costs, Instructions::avx512);
  return costs;
}

}  // namespace

Result<Costs> costs_of(const Topology& topology, Kernels kernels) {
  std::uint32_t sm = 0;
  bool gpus = false;
  for (const Node& node : topology.nodes) {
    if (node.kind != NodeKind::gpu) continue;
    if (gpus && node.sm != sm)
      return invalid_argument("the topology has GPUs of several models; the cost model supports only one");
    gpus = true;
    sm = node.sm;
  }
  if (!gpus) return processor();
  if (sm == 0) return invalid_argument("GPU model unknown; pass --gpu MODEL");
  Costs costs = sm >= 100 ? blackwell() : sm >= 90 ? hopper() : ampere();
  return kernels == Kernels::tutti ? with_kernels_of_tutti(std::move(costs)) : costs;
}

}  // namespace tutti::simulator
