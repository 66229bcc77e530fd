#include "src/model/gpu_kernel.h"

#include <array>

namespace tutti {
namespace {

constexpr std::string_view kEstimate = "estimate", kMeasured = "derived from one H200: perf/results/H200.md";

// Indices into kConstants.
enum Constant : std::size_t {
  kKernel,
  kHostWords,
  kLaneEnds,
  kCall,
  kLoad,
  kFence,
  kCounter,
  kReceive,
  kInstructions,
  kLlCall,
  kLlInstructions,
  kLlMessage,
  kAddresses,
  kAccess,
  kLeave,
  kPull,
  kProxy,
  kConstantCount
};

constexpr std::array<GpuConstant, kConstantCount> kConstants = {{
    {"begin and end of a kernel", 2.1, "us", kMeasured},
    {"read of words in host memory", 1.3, "us", kMeasured},
    {"load and store of the ends of lanes", 0.8, "us", kMeasured},
    {"instructions that begin and end a call", 3.1, "us", kMeasured},
    {"64 KiB loaded by a thread block", 0.6, "us", kEstimate},
    {"system fence", 1.0, "us", "github.com/meta-pytorch/torchcomms/pull/3325, GB200: 0.7 to 1"},
    {"counter of a message, stored or polled", 0.2, "us", kEstimate},
    {"barriers and first load of a message", 1.2, "us", kEstimate},
    {"instructions of a step", 2.5, "us", kMeasured},
    {"instructions that begin and end a call of LL", 0.8, "us", kMeasured},
    {"instructions of a step of LL", 1.1, "us", kMeasured},
    {"message of LL, sent or received", 0.08, "us", kMeasured},
    {"exchange of addresses", 1.3, "us", kMeasured},
    {"announcement of accesses in host memory", 2.1, "us", kMeasured},
    {"end of accesses to peers", 0.6, "us", kMeasured},
    {"rate of accesses to peers' memory", 325, "GB/s", "fitted to github.com/vllm-project/vllm/pull/42324, 8 H100"},
    {"messages of a proxy, one sent and one received", 1.0, "us", kEstimate},
}};

constexpr double kLoadedBytes = 64 * 1024;

constexpr double at(Constant constant) { return kConstants[constant].value; }

// A sender loads, stores and fences; a receiver waits at barriers and loads. A step has the mean of both.
constexpr double kStepUs = (at(kLoad) + at(kFence) + at(kReceive)) / 2;
constexpr double kCopyRate = kLoadedBytes / at(kLoad) * 1e-3;

constexpr GpuKernel kGpuKernel = {
    .start_us = at(kKernel) + at(kLaneEnds) + at(kCall),
    .mapped_us = at(kHostWords) + at(kLoad) + at(kAddresses) + at(kAccess) + at(kLeave) - at(kLaneEnds),
    .step_us = kStepUs,
    .instructions_us = at(kInstructions),
    .ll_start_us = at(kKernel) + at(kLaneEnds) + at(kLlCall),
    .ll_instructions_us = at(kLlInstructions),
    .simple_message_us = at(kCounter),
    .ll_message_us = at(kLlMessage),
    .copy_gbytes_per_s = kCopyRate,
    .fold_gbytes_per_s = kCopyRate / (2 * 8.0 / 7 - 1),  // Of 8 ranks: 32 KiB of each operand in the time of a load.
    .mapped_share = at(kPull) / kNvlinksOfH100,
    .post_us = at(kFence) + at(kCounter),
    .proxy_us = at(kProxy)};

}  // namespace

std::span<const GpuConstant> gpu_constants() { return kConstants; }

const GpuKernel& gpu_kernel() { return kGpuKernel; }

void add_instructions(Costs& costs) {
  for (auto& hops : costs.hop_us) {
    for (double& hop_us : hops) hop_us += kGpuKernel.instructions_us;
    double& ll_us = hops[static_cast<std::size_t>(Protocol::ll)];
    ll_us += kGpuKernel.ll_instructions_us - kGpuKernel.instructions_us;
  }
}

void set_gpu_kernel(Costs& costs) {
  costs.base_us.fill(kGpuKernel.start_us);
  costs.base_us[static_cast<std::size_t>(Protocol::ll)] = kGpuKernel.ll_start_us + kGpuKernel.ll_instructions_us;
  costs.base_us[static_cast<std::size_t>(Protocol::ll128)] += kGpuKernel.instructions_us;
  costs.mapped_us = kGpuKernel.mapped_us;
  costs.step_us.fill(kGpuKernel.ll_message_us);
  costs.step_us[static_cast<std::size_t>(Protocol::simple)] = kGpuKernel.step_us / 2 + kGpuKernel.simple_message_us;
  costs.channel_gbytes_per_s.fill(kGpuKernel.copy_gbytes_per_s);
  costs.fold_gbytes_per_s = kGpuKernel.fold_gbytes_per_s;
}

}  // namespace tutti
