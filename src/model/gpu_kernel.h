// Time of Tutti's GPU kernels, without links: the constants of all predictions for GPUs. Some were measured with Tutti
// on one H200 that several ranks shared; the others are published measurements of other software, and estimates.
#pragma once

#include <span>
#include <string_view>

#include "src/model/costs.h"

namespace tutti {

// Share of the rate of NVLinks of an H100 that NCCL's rings reach, and the rate of all its links.
inline constexpr double kNvlinkEfficiency = 0.808;
inline constexpr double kNvlinksOfH100 = kNvlinkEfficiency * 450;

// A constant from which gpu_kernel() is computed.
struct GpuConstant {
  std::string_view name;
  double value = 0;
  std::string_view unit;
  std::string_view source;
};
std::span<const GpuConstant> gpu_constants();

struct GpuKernel {
  double start_us = 0;         // Begin and end of a call on lanes.
  double mapped_us = 0;        // Added in calls that access peers' memory.
  double step_us = 0;          // Time of a thread block per step of Simple, in addition to its bytes.
  double instructions_us = 0;  // Instructions of a step of a thread block.
  // start_us and instructions_us of LL in its own kernel, which up to 8 ranks of a host use.
  double ll_start_us = 0, ll_instructions_us = 0;
  // Time of a thread block per message that it sends or receives, in addition.
  double simple_message_us = 0, ll_message_us = 0;
  double copy_gbytes_per_s = 0;  // Rate of a thread block.
  double fold_gbytes_per_s = 0;  // Rate of the additional time for received bytes that are reduced.
  double mapped_share = 1;       // Rate of links for accesses to peers' memory, relative to lanes.
  double post_us = 0;            // Time until a proxy sees a message of LL that a thread block has stored.
  double proxy_us = 0;           // Time in which a proxy sends a message to another host, and receives one.
};
const GpuKernel& gpu_kernel();

// Sets the costs of Tutti's kernels, but not hops. Costs count messages, each of Simple as half a step, as if each peer
// had a step of its own: short calls of Simple to several peers are predicted too slow.
void set_gpu_kernel(Costs& costs);
// Adds the instructions of a step to hops that are those of links alone, for models that count hops, but not steps.
void add_instructions(Costs& costs);

}  // namespace tutti
