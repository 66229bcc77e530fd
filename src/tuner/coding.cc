#include "src/tuner/coding.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr double kRoom = 1.05;

}  // namespace

double expected_error(CompressionFormat compression, const CostLaw& cost_law) {
  return compression == CompressionFormat::none ? 0 : compression_error_after(compression, cost_law.rounded);
}

bool keeps_to(double max_relative_error, CompressionFormat compression, const CostLaw& cost_law) {
  return kRoom * expected_error(compression, cost_law) <= max_relative_error;
}

CodecWork codec_work(const Problem& problem, const CostLaw& cost_law) {
  Traffic all;
  for (const Traffic& level : cost_law.levels) {
    all.sent += level.sent;
    all.received += level.received;
  }
  const double ranks = problem.ranks;
  switch (problem.collective) {
    // Reduced data are sent and received once. The sum is then sent, and is received or stored as sent.
    case Collective::all_reduce: return {cost_law.folded + cost_law.longest, cost_law.folded + 1};
    case Collective::reduce_scatter: return {cost_law.folded, cost_law.folded};
    case Collective::reduce: return {std::min(1.0, all.sent), cost_law.folded};
    // Messages of a single block are forwarded unchanged.
    case Collective::all_gather: return {cost_law.longest > 1 ? ranks - 1 : 1, ranks};
    case Collective::broadcast: return {1, 1};
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all: return {all.sent, all.received};
  }
  return {};
}

}  // namespace tutti
