#include "src/model/machine.h"

#include "src/model/gpu_kernel.h"

namespace tutti {
namespace {

constexpr std::size_t kSimple = static_cast<std::size_t>(Protocol::simple);
constexpr std::size_t kLl = static_cast<std::size_t>(Protocol::ll);
constexpr std::size_t kLl128 = static_cast<std::size_t>(Protocol::ll128);

// Indexed by CompressionFormat. Measured by perf/micro/compression_bench in the innermost caches.
struct CodingRates {
  std::array<double, kCompressionFormats> encode, decode;
};
constexpr CodingRates kCodingRates[] = {
    // [Instructions]
    {{0, 6.5, 14, 3.5, 3.6, 4.2, 4.5, 4.8, 4.2, 4.2}, {0, 6, 14, 4.3, 4.5, 4.3, 9.4, 8.7, 7.6, 7.8}},
    {{0, 73, 48, 12, 12, 15, 16, 16, 15.5, 16}, {0, 130, 110, 56, 78, 47, 77, 73, 38, 49}},
    {{0, 155, 135, 17, 17, 23, 30, 27, 18.5, 21}, {0, 145, 140, 41, 77, 38, 140, 130, 61, 86}},
};

Costs host_costs() {
  Costs costs;
  costs.name = "host memory";
  costs.base_us[kSimple] = 0.025;
  costs.base_us[kLl] = 0.015;
  auto& memory = costs.hop_us[static_cast<std::size_t>(LinkClass::memory)];
  memory[kSimple] = 0.12;  // A counter, then the data.
  memory[kLl] = 0.045;
  costs.hop_us[static_cast<std::size_t>(LinkClass::network)][kSimple] = 1.5;
  costs.step_us[kSimple] = 0.02;
  costs.step_us[kLl] = 0.01;
  costs.channel_gbytes_per_s[kSimple] = 52;
  costs.channel_gbytes_per_s[kLl] = 20;
  costs.fold_gbytes_per_s = 60;
  costs.copy_gbytes_per_s = 45;
  set_coding_rates(costs, Instructions::avx512);
  return costs;
}

constexpr Level kMemoryOfHosts = {
    .links = LinkClass::memory, .stall_us = 0.05, .handover_us = 1.62, .passed_on_us = 0.06};
constexpr Level kTcp = {.links = LinkClass::network,
                        .member_gbytes_per_s = 1.2,  // 10 Gbit/s: the default without a measurement.
                        .latency_us = 10,            // Network cards and a switch.
                        .message_us = 4,             // A system call, and the kernel's work for it.
                        .receive_us = 1.5,           // One call receives messages of several ranks.
                        .work_gbytes_per_s = 10,
                        .stall_us = 0.1,
                        .handover_us = 5.5,
                        .passed_on_us = 1.5,  // Equal to a hop.
                        .woken_us = 15};      // Zero in memory, where a rank polls as soon as it has a core.

// Predicted, not measured (see perf/results/PENDING.md). A channel reads and writes at copy speed; arithmetic overlaps.
// Coding moves 4 bytes per value; the message's own bytes are counted as read and written elsewhere.
double coding_gbytes_per_s(CompressionFormat compression, double copied_gbytes_per_s) {
  const double value_bytes = sizeof(float),
               message_bytes = static_cast<double>(compressed_bytes(compression)) / kCompressionGroup;
  return 2 * copied_gbytes_per_s * value_bytes / (value_bytes - message_bytes);
}

Costs device_costs() {
  Costs costs;
  costs.name = "a GPU, predicted";
  for (auto& hops : costs.hop_us) {
    hops[kSimple] = 0.8;  // As in the simulator (tools/simulator/figures.cc).
    hops[kLl] = hops[kLl128] = 0.6;
  }
  costs.hop_us[static_cast<std::size_t>(LinkClass::network)] = {14, 5, 8.5};
  add_instructions(costs);
  set_gpu_kernel(costs);
  costs.sent_bytes_per_byte[kLl] = 2;
  costs.sent_bytes_per_byte[kLl128] = 128.0 / 120;
  for (std::uint32_t i = 1; i < kCompressionFormats; ++i)
    costs.encode_gbytes_per_s[i] = costs.decode_gbytes_per_s[i] =
        coding_gbytes_per_s(static_cast<CompressionFormat>(i), costs.channel_gbytes_per_s[kSimple]);
  return costs;
}

}  // namespace

void set_coding_rates(Costs& costs, Instructions instructions) {
  const CodingRates& rates = kCodingRates[static_cast<std::size_t>(instructions)];
  costs.encode_gbytes_per_s = rates.encode;
  costs.decode_gbytes_per_s = rates.decode;
}

const Machine& machine_of_hosts() {
  static const Machine machine = {.costs = host_costs(), .levels = {kMemoryOfHosts, kTcp}};
  return machine;
}

const Machine& machine_of_devices() {
  static const Machine machine = {
      .costs = device_costs(),
      .levels = {
          {.links = LinkClass::nvlink, .member_gbytes_per_s = kNvlinksOfH100, .rank_gbytes_per_s = kNvlinksOfH100},
          {.links = LinkClass::network, .member_gbytes_per_s = 400, .rank_gbytes_per_s = 50}}};
  return machine;
}

}  // namespace tutti
