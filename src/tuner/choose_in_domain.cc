// The limits are where predictions change sides for 12 to 72 GB200, and 16 A100, H100 and B200 (tutti explain
// --topology gb200-nvl72 --hosts N --nvlink-domain N). Each of many peers has few channels, so that the staging ring
// serves calls that LL does not. Up to kSeveralRanks have enough channels for large blocks.
#include "src/tuner/choose_in_domain.h"

#include <algorithm>

#include "src/tuner/channels.h"
#include "src/tuner/choose_over_hosts.h"

namespace tutti {
namespace {

constexpr Rank kSeveralRanks = 16;
// Total over the peers to which a rank sends a whole block: sums by one round of LL, and broadcasts and reductions
// without a tree.
constexpr std::uint64_t kOneRoundBytes = 256 * kKiB, kDirectOfRootBytes = 768 * kKiB;
constexpr Rank kMaxOneRoundRanks = 36;
// All-gathers, reduce-scatters and all-to-alls by LL: total over the ranks, in bytes of the LL lanes to one of them.
constexpr std::uint64_t kLlLanes = 12;
// Sums by two rounds of LL: maximum for up to kSeveralRanks, and for up to twice as many. The ring is faster between
// more ranks.
constexpr std::uint64_t kTwoRoundsBytes = 512 * kKiB, kTwoRoundsBytesOfMany = 256 * kKiB;
// Blocks of all-gathers and reduce-scatters, and total of broadcasts over the peers, from which switches are faster
// than accesses to each peer, and than trees.
constexpr std::uint64_t kSwitchedBlockBytes = 128 * kKiB, kSwitchedBroadcastBytes = 4096 * kKiB;
// Without switches: sums and blocks of several ranks that are faster in the ring than by lanes, and broadcasts of more
// ranks that read parts of the block in the ring.
constexpr std::uint64_t kSumInRingBytes = 4096 * kKiB, kBlockInRingBytes = 512 * kKiB, kSplitBytes = 8192 * kKiB;

bool has_several_ranks(const Query& query) { return query.problem.ranks <= kSeveralRanks; }

std::string_view sum_in_domain(const Query& query) {
  const Rank ranks = query.problem.ranks;
  const bool any_protocol = query.protocol.empty();
  if (any_protocol && query.block_bytes * (ranks - 1) <= kOneRoundBytes)
    return ranks <= kMaxOneRoundRanks ? "one_shot" : "recursive_doubling";
  const std::uint64_t two_rounds_bytes = has_several_ranks(query)     ? kTwoRoundsBytes
                                         : ranks <= 2 * kSeveralRanks ? kTwoRoundsBytesOfMany
                                                                      : 0;
  if (any_protocol && query.block_bytes <= std::min(two_rounds_bytes, ll_lane_bytes(query) * ranks)) return "two_shot";
  if (query.by_switches) return kSwitchStaged;
  return has_several_ranks(query) && query.block_bytes > kSumInRingBytes ? "two_shot" : "two_shot_staged";
}

std::string_view blocks_in_domain(const Query& query) {
  if (query.protocol.empty() && query.block_bytes * query.problem.ranks <= kLlLanes * ll_lane_bytes(query))
    return "direct";
  const bool switched = query.by_switches && query.problem.collective != Collective::all_to_all;
  if (switched && query.block_bytes >= kSwitchedBlockBytes) return kSwitchStaged;
  return has_several_ranks(query) && query.block_bytes >= kBlockInRingBytes ? "direct" : "direct_staged";
}

std::string_view from_or_to_root_in_domain(const Query& query) {
  const std::uint64_t total_bytes = query.block_bytes * (query.problem.ranks - 1);
  if (query.protocol.empty() && total_bytes <= kDirectOfRootBytes) return "direct";
  if (query.problem.collective == Collective::reduce) return "binary_tree";
  if (query.by_switches && total_bytes >= kSwitchedBroadcastBytes) return kSwitchStaged;
  return !has_several_ranks(query) && query.block_bytes >= kSplitBytes ? "split_staged" : "binary_tree";
}

}  // namespace

std::string_view choose_in_domain(const Query& query) {
  if (!query.on_nvlinks || query.problem.ranks <= kFewRanks || !has_ring(query, kSwitchStaged)) return "";
  if (query.mapped || query.compression != CompressionFormat::none || !permits_simple(query)) return "";
  switch (query.problem.collective) {
    case Collective::all_reduce: return sum_in_domain(query);
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all: return blocks_in_domain(query);
    case Collective::broadcast:
    case Collective::reduce: return from_or_to_root_in_domain(query);
    default: return "";
  }
}

}  // namespace tutti
