#include "src/model/machine.h"

namespace tutti {
namespace {

constexpr std::size_t kBulk = static_cast<std::size_t>(Protocol::bulk);
constexpr std::size_t kLines = static_cast<std::size_t>(Protocol::lines);
constexpr std::size_t kRows = static_cast<std::size_t>(Protocol::rows);

// In the order of WireFormat: what perf/micro/wire_bench measures in the nearest caches.
struct CodingRates {
  std::array<double, kWireFormats> encode, decode;
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
  costs.base_us[kBulk] = 0.025;
  costs.base_us[kLines] = 0.015;
  auto& memory = costs.hop_us[static_cast<std::size_t>(LinkClass::memory)];
  memory[kBulk] = 0.12;  // A counter, and then the data.
  memory[kLines] = 0.045;
  costs.hop_us[static_cast<std::size_t>(LinkClass::network)][kBulk] = 1.5;
  costs.step_us[kBulk] = 0.02;
  costs.step_us[kLines] = 0.01;
  costs.channel_gbytes_per_s[kBulk] = 52;
  costs.channel_gbytes_per_s[kLines] = 20;
  costs.fold_gbytes_per_s = 60;
  costs.copy_gbytes_per_s = 45;
  set_coding_rates(costs, Instructions::avx512);
  return costs;
}

constexpr Level kMemoryOfHosts = {
    .links = LinkClass::memory, .stall_us = 0.05, .handover_us = 1.62, .passed_on_us = 0.06};
constexpr Level kTcp = {.links = LinkClass::network,
                        .member_gbytes_per_s = 1.2,  // 10 Gbit/s, as nobody has asked.
                        .latency_us = 10,            // Of cards and a switch; none within one machine.
                        .message_us = 4,             // A system call, and what the kernel does then.
                        .receive_us = 1.5,           // One call takes in what several ranks have sent.
                        .work_gbytes_per_s = 10,
                        .stall_us = 0.1,
                        .handover_us = 5.5,
                        .passed_on_us = 1.5,  // As a hop takes.
                        .woken_us = 15};      // None in memory, which ranks look at when they have a core.

// A channel reads and writes as fast as it copies, and arithmetic goes on beside that. What it encodes or decodes are 4
// bytes for each value, but those of the message, which is moved, are counted there as read and as written. Nobody has
// measured it: see perf/results/PENDING.md.
double coding_gbytes_per_s(WireFormat wire, double copied_gbytes_per_s) {
  const double value_bytes = sizeof(float), message_bytes = static_cast<double>(wire_bytes(wire)) / kWireGroup;
  return 2 * copied_gbytes_per_s * value_bytes / (value_bytes - message_bytes);
}

Costs device_costs() {
  Costs costs;
  costs.name = "a GPU, estimated";
  costs.launch_us = {6, 8, 3};
  for (auto& hops : costs.hop_us) {
    hops[kBulk] = 2;
    hops[kLines] = hops[kRows] = 1;
  }
  costs.hop_us[static_cast<std::size_t>(LinkClass::network)] = {10, 10, 10};
  costs.step_us = {0.5, 0.2, 0.2};
  costs.channel_gbytes_per_s[kBulk] = 15;
  costs.channel_gbytes_per_s[kLines] = 6;
  costs.channel_gbytes_per_s[kRows] = 12;
  costs.wire_bytes[kLines] = 2;
  costs.wire_bytes[kRows] = 128.0 / 120;
  costs.most_channels = 32;
  for (std::uint32_t i = 1; i < kWireFormats; ++i)
    costs.encode_gbytes_per_s[i] = costs.decode_gbytes_per_s[i] =
        coding_gbytes_per_s(static_cast<WireFormat>(i), costs.channel_gbytes_per_s[kBulk]);
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
      .levels = {{.links = LinkClass::nvlink, .member_gbytes_per_s = 400, .rank_gbytes_per_s = 400},
                 {.links = LinkClass::network, .member_gbytes_per_s = 400, .rank_gbytes_per_s = 50}}};
  return machine;
}

}  // namespace tutti
