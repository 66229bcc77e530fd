#include "src/tuner/coding.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr double kRoom = 1.05;

}  // namespace

double expected_error(WireFormat wire, const Effort& effort) {
  return wire == WireFormat::none ? 0 : wire_error_after(wire, effort.rounded);
}

bool keeps_to(double max_relative_error, WireFormat wire, const Effort& effort) {
  return kRoom * expected_error(wire, effort) <= max_relative_error;
}

Coded coded_of(const Problem& problem, const Effort& effort) {
  Traffic all;
  for (const Traffic& level : effort.levels) {
    all.sent += level.sent;
    all.received += level.received;
  }
  const double ranks = problem.ranks;
  switch (problem.collective) {
    // What is reduced goes out and comes in; then the sum goes out, and all of it comes in or is kept as it went out.
    case Collective::all_reduce: return {effort.folded + effort.longest, effort.folded + 1};
    case Collective::reduce_scatter: return {effort.folded, effort.folded};
    case Collective::reduce: return {std::min(1.0, all.sent), effort.folded};
    // Blocks of others are passed on as they came where each message has one.
    case Collective::all_gather: return {effort.longest > 1 ? ranks - 1 : 1, ranks};
    case Collective::broadcast: return {1, 1};
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all: return {all.sent, all.received};
  }
  return {};
}

}  // namespace tutti
