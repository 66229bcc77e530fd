#include "tools/simulator/nccl_protocol.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "src/plan/problem.h"

namespace tutti::simulator {
namespace {

constexpr double kChannels = 24;
constexpr double kLlBytesToAPeer = 16384;  // NCCL_P2P_LL_THRESHOLD.
constexpr double kPartOfLl128 = 0.92;      // Rate of LL128 relative to Simple.
constexpr double kNvlsUs = 25;
constexpr std::uint32_t kFirstWithNvls = 90;

bool is_to_peers(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::gather || collective == Collective::scatter;
}

// NCCL's assumptions about the bandwidth of rings on a host, in GB/s.
struct Rings {
  double gbytes_per_s = 0;
  double ll = 0;     // Limit of LL for all channels together.
  double ll128 = 0;  // Limit of LL128 per channel.
};

Result<Rings> rings_of(std::uint32_t sm) {
  if (sm >= 100) return Rings{720, 282, 73.4};
  if (sm >= 90) return Rings{360, 141, 36.7};
  if (sm >= 80) return Rings{240, 87.7, 20};
  return unsupported("the choices of NCCL are not modeled for GPUs of compute capability " + std::to_string(sm) +
                     ", only for 80 and higher");
}

struct Estimate {
  Protocol protocol;
  double us = 0;
};

double rounds_of(Collective collective, double ranks) {
  if (has_root(collective)) return ranks;
  return collective == Collective::all_reduce ? 2 * (ranks - 1) : ranks - 1;
}

Result<Estimate> best_of_rings(std::uint32_t sm, Collective collective, Rank ranks, double bytes) {
  struct Terms {
    Protocol protocol;
    double start_us, hop_us, gbytes_per_s;
  };
  const Rings rings = TUTTI_TRY(rings_of(sm));
  const double rounds = rounds_of(collective, ranks);
  const double hops =
      has_root(collective) ? 1 : rounds;  // NCCL counts one hop of a chain and assumes that the others overlap.
  const std::array<Terms, 3> all = {
      {{Protocol::ll, 6.6, 0.6, std::min(rings.ll, rings.gbytes_per_s / 2)},
       {Protocol::simple, 8.4, 3.4, rings.gbytes_per_s},
       {Protocol::ll128, 14, 1.9, std::min(kPartOfLl128 * rings.gbytes_per_s, kChannels * rings.ll128)}}};
  Estimate best;
  for (const Terms& each : all) {
    const double us = each.start_us + hops * each.hop_us + bytes * 1e-3 * rounds / ranks / each.gbytes_per_s;
    if (&each == all.data() || us < best.us) best = {each.protocol, us};
  }
  return best;
}

// Returns the rate in GB/s at which each rank pulls through the switches. NCCL's search takes the first rate that the
// links can carry heads + 1 times: once per head, and once more because a head also sends the sum.
double pulled_gbytes_per_s(std::uint32_t sm, Rank heads) {
  constexpr std::array<double, 11> kHopper = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
  constexpr std::array<double, 12> kBlackwell = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
  constexpr double kHopperLinks = 18 * 20.6, kBlackwellLinks = 18 * 40.1;
  const bool blackwell = sm >= 100;
  const std::span<const double> rates =
      blackwell ? std::span<const double>(kBlackwell) : std::span<const double>(kHopper);
  const double links = blackwell ? kBlackwellLinks : kHopperLinks;
  const auto fits = [&](double rate) { return rate * (heads + 1) <= links; };
  const auto found = std::find_if(rates.begin(), rates.end(), fits);
  return found == rates.end() ? 0 : *found;
}

}  // namespace

Result<Protocol> nccl_protocol(std::uint32_t sm, Collective collective, Rank ranks, double bytes) {
  TUTTI_CHECK_OK(rings_of(sm).status());
  if (is_to_peers(collective)) return bytes / ranks <= kLlBytesToAPeer ? Protocol::ll : Protocol::simple;
  return TUTTI_TRY(best_of_rings(sm, collective, ranks, bytes)).protocol;
}

Result<bool> nccl_takes_nvls(std::uint32_t sm, Collective collective, Rank ranks, double bytes) {
  const Estimate rings = TUTTI_TRY(best_of_rings(sm, collective, ranks, bytes));
  if (sm < kFirstWithNvls || ranks < 2 || has_root(collective) || is_to_peers(collective)) return false;
  const bool all_reduce = collective == Collective::all_reduce;
  if (!all_reduce && ranks > kMaxNvlsHeads) return false;
  const double n = ranks;
  const Rank heads = std::min(ranks, kMaxNvlsHeads);
  const double part = all_reduce ? 5.0 / 6 : std::min((n - 1) / n, 0.9);
  const double rate = heads * pulled_gbytes_per_s(sm, heads) * part;
  return rate > 0 && kNvlsUs + bytes * 1e-3 / rate < rings.us;
}

}  // namespace tutti::simulator
