#include "src/simulator/nccl_protocol.h"

#include <algorithm>
#include <array>
#include <string>

#include "src/plan/problem.h"

namespace tutti {
namespace {

constexpr double kChannels = 24;
constexpr double kLinesBytesToAPeer = 16384;  // NCCL_P2P_LL_THRESHOLD.
constexpr double kPartOfRows = 0.92;          // Of the rate of bulk.

// What NCCL takes the rings of a host to carry, in GB/s.
struct Rings {
  double gbytes_per_s = 0;
  double lines = 0;  // At most.
  double rows = 0;   // Likewise, of a channel.
};

Result<Rings> rings_of(std::uint32_t sm) {
  if (sm >= 100) return Rings{720, 282, 73.4};
  if (sm >= 90) return Rings{360, 141, 36.7};
  if (sm >= 80) return Rings{240, 87.7, 20};
  return unsupported("what NCCL chooses on GPUs of compute capability " + std::to_string(sm) + " is not known here");
}

struct Estimate {
  Protocol protocol;
  double start_us, hop_us, gbytes_per_s;
};

double rounds_of(Collective collective, double ranks) {
  if (has_root(collective)) return ranks;
  return collective == Collective::all_reduce ? 2 * (ranks - 1) : ranks - 1;
}

}  // namespace

Result<Protocol> nccl_protocol(std::uint32_t sm, Collective collective, Rank ranks, double bytes) {
  const Rings rings = TUTTI_TRY(rings_of(sm));
  const bool to_peers =
      collective == Collective::all_to_all || collective == Collective::gather || collective == Collective::scatter;
  if (to_peers) return bytes / ranks <= kLinesBytesToAPeer ? Protocol::lines : Protocol::bulk;
  const double rounds = rounds_of(collective, ranks);
  const double hops = has_root(collective) ? 1 : rounds;  // Of a chain it takes the others to be hidden.
  const std::array<Estimate, 3> estimates = {
      {{Protocol::lines, 6.6, 0.6, std::min(rings.lines, rings.gbytes_per_s / 2)},
       {Protocol::bulk, 8.4, 3.4, rings.gbytes_per_s},
       {Protocol::rows, 14, 1.9, std::min(kPartOfRows * rings.gbytes_per_s, kChannels * rings.rows)}}};
  const auto us = [&](const Estimate& each) {
    return each.start_us + hops * each.hop_us + bytes * 1e-3 * rounds / ranks / each.gbytes_per_s;
  };
  const auto* const best = std::min_element(estimates.begin(), estimates.end(),
                                            [&](const Estimate& a, const Estimate& b) { return us(a) < us(b); });
  return best->protocol;
}

}  // namespace tutti
