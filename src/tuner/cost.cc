#include "src/tuner/cost.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr double kBytesPerUs = 1000;  // Of 1e9 bytes per second.

double time_us(double bytes, double gbytes_per_s) {
  return gbytes_per_s > 0 ? bytes / (gbytes_per_s * kBytesPerUs) : 0;
}

}  // namespace

Prediction predict(const Effort& effort, const Load& load, const Machine& machine) {
  const Costs& costs = machine.costs;
  const auto protocol = static_cast<std::size_t>(load.protocol);
  const double pieces = std::max(1.0, std::ceil(effort.longest * load.block_bytes / load.piece_bytes));
  Prediction predicted;
  predicted.launch_us = costs.launch_us[static_cast<std::size_t>(load.launch)] + costs.base_us[protocol];

  double moved = 0, chain = 0, messages = 0;  // By one rank; along the longest chain; of one piece.
  for (std::size_t i = 0; i < Effort::kLevels; ++i) {
    const Traffic& traffic = effort.levels[i];
    if (machine.levels.empty() || traffic == Traffic()) continue;
    const Level& level = machine.levels[std::min(i + load.level, machine.levels.size() - 1)];
    const double hop_us = costs.hop_us[static_cast<std::size_t>(level.links)][protocol] + level.latency_us;
    predicted.hops_us += (traffic.depth + traffic.stalls * (pieces - 1)) * hop_us;
    const double wire_bytes = load.block_bytes * costs.wire_bytes[protocol];
    const double busiest = std::max(traffic.sent, traffic.received) * wire_bytes;
    const double of_group = (traffic.between > 0 ? traffic.between * wire_bytes : busiest);
    predicted.links_us = std::max(
        {predicted.links_us, time_us(busiest, level.rank_gbytes_per_s), time_us(of_group, level.member_gbytes_per_s)});
    moved += traffic.sent + traffic.received;
    chain += 2 * traffic.chain;
    messages += traffic.messages;
    predicted.work_us += traffic.messages * pieces * level.message_us;
  }
  const double channels = std::max(1U, load.channels);
  const double moved_us = time_us(load.block_bytes, costs.channel_gbytes_per_s[protocol] * channels);
  // What is done by several ranks in turn is done by all at once as soon as there are several pieces.
  const double in_turn = moved + std::max(0.0, chain - moved) / pieces;
  predicted.work_us += messages * pieces * costs.step_us[protocol] / channels + in_turn * moved_us +
                       time_us(effort.folded * load.block_bytes, costs.fold_gbytes_per_s * channels) +
                       time_us(effort.copied * load.block_bytes, costs.copy_gbytes_per_s * channels);
  return predicted;
}

}  // namespace tutti
