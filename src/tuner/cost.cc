#include "src/tuner/cost.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr double kBytesPerUs = 1000;  // Bytes per us at 1 GB/s.

double time_us(double bytes, double gbytes_per_s) {
  return gbytes_per_s > 0 ? bytes / (gbytes_per_s * kBytesPerUs) : 0;
}

// Context of one level: number of chunks, and cost of a message.
struct Passing {
  const Costs& costs;
  const Load& load;
  const Level& level;
  double chunks = 1;  // Per channel.
  bool oversubscribed = false;
};

// Latency of dependent messages. On oversubscribed cores, a rank that waits for a message waits for a core, and the
// message arrives earlier, so protocols do not differ. In calls with a root, ranks do not even wait for a core, since
// they continue with other calls.
double hops_us(const Traffic& traffic, const Passing& passing) {
  const auto protocol = static_cast<std::size_t>(passing.load.protocol);
  const bool handed_over = passing.oversubscribed && (!passing.load.rooted || passing.load.exchange_hops > 0);
  const double alone_us = passing.costs.hop_us[static_cast<std::size_t>(passing.level.links)][protocol];
  const double shared_us = handed_over ? passing.level.handover_us : passing.level.passed_on_us;
  const double hop_us = passing.level.latency_us + (passing.oversubscribed ? shared_us : alone_us);
  const double at_once = std::max(0.0, traffic.messages / 2 - traffic.depth);  // Received messages beyond one per hop.
  const double turns = passing.load.overlaps ? 1 : passing.chunks;
  return (passing.load.exchange_hops + traffic.depth * turns + traffic.stalls * (passing.chunks - 1)) * hop_us +
         (handed_over ? at_once * passing.level.woken_us : 0);
}

// Time of the busiest rank. Work that several ranks do on one chunk in sequence overlaps for different chunks and
// consecutive calls.
double work_us(const Traffic& traffic, const Passing& passing) {
  const auto protocol = static_cast<std::size_t>(passing.load.protocol);
  const double moved = traffic.sent + traffic.received;
  const double at_once = passing.load.overlaps ? passing.chunks : 1;
  const double in_sequence = passing.load.rooted ? 0 : std::max(0.0, 2 * traffic.chain - moved) / at_once;
  const double own_rate = passing.level.work_gbytes_per_s;
  const double rate = own_rate > 0 ? own_rate : passing.costs.channel_gbytes_per_s[protocol];
  const double sends = moved > 0 ? traffic.sent / moved : 0.5;  // Share of sent messages.
  const double message_us =
      passing.costs.step_us[protocol] + sends * passing.level.message_us + (1 - sends) * passing.level.receive_us;
  const double chunks = passing.chunks * std::max(1U, passing.load.channels);
  return traffic.messages * chunks * message_us + traffic.stalls * chunks * passing.level.stall_us +
         time_us((moved + in_sequence) * passing.load.block_bytes, rate);
}

double links_us(const Traffic& traffic, const Passing& passing) {
  const double bytes =
      passing.load.block_bytes * passing.costs.sent_bytes_per_byte[static_cast<std::size_t>(passing.load.protocol)];
  const double busiest = std::max(traffic.sent, traffic.received);
  const double of_group = traffic.between > 0 ? traffic.between : busiest;
  return std::max(time_us(busiest * bytes, passing.level.rank_gbytes_per_s),
                  time_us(of_group * bytes, passing.level.member_gbytes_per_s));
}

double coding_us(const Coding& coding, const Costs& costs) {
  if (coding.compression == CompressionFormat::none) return 0;
  const CodingTimes times = coding_times(costs, coding.compression, coding.type);
  return coding.values_bytes * (coding.blocks.encoded * times.encode_us + coding.blocks.decoded * times.decode_us);
}

// True if unequal work of ranks evens out on oversubscribed cores, in calls with a root. Over a network ranks wait in
// system calls, and the busiest one decides.
bool evens_out(const Load& load, const Machine& machine) {
  return load.rooted && load.level == 0 && machine.ranks_per_core > 1;
}

// Work of a shared core relative to the busiest rank's own work. Ranks have equal work, or `all` in total: the busiest
// one then shares its core with ranks that have less.
double shared(double busiest, double all, const Load& load, const Machine& machine) {
  if (!evens_out(load, machine) || load.exchange_hops > 0 || !(busiest > 0)) return machine.ranks_per_core;
  const double others = std::clamp((all - busiest) / (load.ranks - 1), 0.0, busiest);
  return 1 + (machine.ranks_per_core - 1) * others / busiest;
}

// Time of sums and copies within a rank's memory.
double local_us(const CostLaw& cost_law, const Load& load, const Machine& machine) {
  const Costs& costs = machine.costs;
  const bool raw = load.coding.compression == CompressionFormat::none;
  const double halves = load.coding.type == DataType::float32 ? 1 : 2;
  const double summed_bytes = raw ? load.block_bytes : load.coding.values_bytes;
  const double copied_bytes = raw ? load.block_bytes : load.coding.values_bytes / halves;
  const bool by_root = evens_out(load, machine);  // Also in a chain, where the root is not the busiest rank.
  const double copied = by_root ? std::max(load.copied, cost_law.copied) : machine.ranks_per_core * cost_law.copied;
  return shared(cost_law.folded, load.ranks - 1, load, machine) *
             time_us(cost_law.folded * summed_bytes, costs.fold_gbytes_per_s) +
         time_us(copied * copied_bytes, costs.copy_gbytes_per_s);
}

}  // namespace

Prediction predict(const CostLaw& cost_law, const Load& load, const Machine& machine) {
  const Costs& costs = machine.costs;
  const double longest = cost_law.longest * load.block_bytes / std::max(1U, load.channels);
  const double chunks = std::max(1.0, std::ceil(longest / load.chunk_bytes));
  Prediction predicted;
  predicted.launch_us = costs.launch_us + costs.base_us[static_cast<std::size_t>(load.protocol)];
  for (std::size_t i = 0; i < CostLaw::kLevels && !machine.levels.empty(); ++i) {
    const Traffic& traffic = cost_law.levels[i];
    if (traffic == Traffic()) continue;
    const Passing passing = {costs, load, machine.levels[std::min(i + load.level, machine.levels.size() - 1)], chunks,
                             machine.ranks_per_core > 1};
    predicted.hops_us += hops_us(traffic, passing);
    const double ends = i == 0 ? 2 * (load.ranks - 1) : load.ranks * traffic.messages;  // Ends of messages.
    predicted.work_us += shared(traffic.messages, ends, load, machine) * work_us(traffic, passing);
    predicted.links_us = std::max(predicted.links_us, links_us(traffic, passing));
  }
  predicted.work_us += local_us(cost_law, load, machine) + machine.ranks_per_core * coding_us(load.coding, costs);
  predicted.work_us /= std::max(1U, load.channels);
  return predicted;
}

}  // namespace tutti
