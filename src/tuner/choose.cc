#include "src/tuner/choose.h"

#include <algorithm>
#include <bit>
#include <string>

namespace tutti {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kLinesBytes = 560;  // Ten lines, so 512 bytes: above, a counter beside the data is cheaper.
constexpr std::uint64_t kOneShotBytes = 32 * kKiB;
constexpr std::uint64_t kMappedBytes = 16 * kKiB;         // Below, two flag rounds cost more than a copy.
constexpr std::uint64_t kPieceBytes = 64 * kKiB;          // Between two ranks: the slots stay in a level-2 cache.
constexpr std::uint64_t kExchangePieceBytes = 32 * kKiB;  // Of lanes that swap, which hold twice as many slots.
constexpr std::uint64_t kCopiedPieceBytes = 32 * kKiB;    // Between two: who only copies has few slots at hand.
constexpr std::uint64_t kMostCopiedBytes = 8192 * kKiB;   // Above, buffers are in no cache.
constexpr std::uint64_t kLeastPieceBytes = 16 * kKiB;     // Below, flags cost more than the caches give.
constexpr std::uint64_t kStreamBytes = 128 * kKiB;
constexpr std::uint64_t kChainBytes = 1024 * kKiB;  // From here pieces fill a chain.
// Above, what passes between hosts counts, not how often. Measured for all-reduces of 3+1, 3+2 and 2x2 ranks: over
// links of 1 Gbit/s they pay from between 4 and 16 KiB on, over free ones from 64 KiB on, and lose less in between.
constexpr std::uint64_t kFlatBytes = 4 * kKiB;
constexpr std::uint64_t kNetworkPieceBytes = 128 * kKiB;  // Fewer system calls; longer ones leave the caches.
constexpr std::uint64_t kAcrossPieceBytes = 64 * kKiB;    // Over hosts, where a rank speaks with few others.
constexpr std::uint64_t kShardPieceBytes = 32 * kKiB;     // Of an all-reduce over hosts, to each other one.
constexpr std::uint64_t kRoundBytes = 64 * kKiB;          // What a network carries in the time of one more round.
constexpr Rank kFewRanks = 8;      // Above, a rank no longer sends its whole block to each other one.
constexpr Rank kFewLeaves = 4;     // Up to here a root serves all ranks itself.
constexpr Rank kDirectRanks = 64;  // Up to here every rank may have lanes to every other.

}  // namespace

// One round of whole blocks, or two rounds of parts: between two ranks both send as much, and the parts are added while
// others are under way.
bool one_round_pays(const Query& query) {
  const std::uint64_t more_bytes = query.block_bytes * (query.problem.ranks - 2);
  return query.block_bytes <= kNetworkPieceBytes && more_bytes <= kRoundBytes;
}

namespace {

std::string_view all_reduce(const Query& query) {
  const Rank ranks = query.problem.ranks;
  if (!query.problem.groups.empty()) return "recursive_doubling";  // The fewest messages between hosts.
  if (query.network && ranks <= kFewRanks) return one_round_pays(query) ? "one_shot" : "two_shot";
  if (query.mapped && query.block_bytes >= kMappedBytes) return "two_shot_mapped";
  if (ranks > kFewRanks)
    return query.block_bytes <= kOneShotBytes ? "recursive_doubling" : ranks <= kDirectRanks ? "two_shot" : "ring";
  return query.block_bytes * (ranks - 1) <= kOneShotBytes ? "one_shot" : "two_shot";
}

std::string_view rooted(const Query& query, std::string_view tree) {
  if (query.problem.ranks <= kFewLeaves) return "direct";
  return query.block_bytes >= kChainBytes && query.problem.ranks <= kDirectRanks ? "chain" : tree;
}

}  // namespace

// Whether blocks should cross each host's link once. All-to-all has as much to send between hosts either way.
bool minds_hosts(const Query& query) {
  if (query.problem.groups.empty() || query.block_bytes <= kFlatBytes) return false;
  switch (query.problem.collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::broadcast: return true;
    default: return false;
  }
}

namespace {

std::string_view algorithm_for(const Query& query) {
  if (minds_hosts(query)) return "hierarchical";
  const bool direct = query.problem.ranks <= kDirectRanks;
  const bool mapped = query.mapped && query.block_bytes * query.problem.ranks >= kMappedBytes;
  switch (query.problem.collective) {
    case Collective::all_reduce: return all_reduce(query);
    case Collective::all_gather: return mapped ? "direct_mapped" : direct ? "direct" : "ring";
    case Collective::reduce_scatter: return mapped ? "direct_mapped" : direct ? "direct" : "ring";
    case Collective::all_to_all: return mapped ? "direct_mapped" : "direct";
    case Collective::broadcast: return mapped ? "split_mapped" : rooted(query, "binary_tree");
    case Collective::reduce: return rooted(query, "binary_tree");
    case Collective::gather:
    case Collective::scatter: return "direct";
  }
  return "";
}

// Where an algorithm sends several blocks at once, at most all of them. This room knows algorithms by name only; the
// tests hold these names, and the ending of the mapped ones, against what the algorithms do.
std::uint64_t longest_message(std::string_view algorithm, const Query& query) {
  const bool blocks = algorithm.starts_with("bruck") || algorithm.starts_with("binomial") || algorithm == "doubling" ||
                      algorithm == "halving";
  return query.block_bytes * (blocks ? query.problem.ranks : 1);
}

// The more lanes a rank has to others, the smaller their pieces, so that the slots still fit.
std::uint64_t shared_among(Rank ranks, std::uint64_t piece_bytes) {
  return std::max(piece_bytes / std::bit_ceil(ranks - 1), kLeastPieceBytes);
}

// Of an all-reduce over hosts, messages within one are of a whole shard, and those between hosts of a part for each.
std::uint64_t network_piece_bytes(std::string_view algorithm, const Query& query) {
  if (algorithm != "hierarchical" || query.problem.groups.empty())
    return shared_among(query.problem.ranks, kNetworkPieceBytes);
  if (query.problem.collective != Collective::all_reduce) return kAcrossPieceBytes;
  return std::min(kShardPieceBytes * query.problem.groups[0].size(), kNetworkPieceBytes);
}

}  // namespace

Status check_protocol(std::string_view protocol) {
  if (protocol.empty() || std::find(std::begin(kProtocols), std::end(kProtocols), protocol) != std::end(kProtocols))
    return {};
  return invalid_argument("there is no protocol '" + std::string(protocol) +
                          "'; the protocols are lines, bulk and, on GPUs, rows");
}

Result<Choice> choose(const Query& query) {
  TUTTI_CHECK_OK(check_protocol(query.protocol));
  if (query.teams > 0) return choose_for_teams(query);
  if (query.protocol == "rows") return unsupported("protocol 'rows' is for GPUs: on host memory take lines or bulk");
  Choice choice;
  choice.algorithm = query.algorithm.empty() ? algorithm_for(query) : query.algorithm;
  choice.mapped = choice.algorithm.ends_with("_mapped");
  const bool small = longest_message(choice.algorithm, query) <= kLinesBytes;
  const bool lines = query.protocol.empty() ? small : query.protocol == "lines";
  choice.protocol = lines ? Protocol::lines : Protocol::bulk;
  const bool one_message = choice.algorithm == "one_shot" && query.block_bytes <= kStreamBytes;
  const Collective collective = query.problem.collective;
  const bool exchange = choice.algorithm == "direct" &&
                        (collective == Collective::all_gather || collective == Collective::reduce_scatter ||
                         collective == Collective::all_to_all);
  const Rank ranks = query.problem.ranks;
  const bool copied = ranks == 2 && !reduces(collective) && query.block_bytes <= kMostCopiedBytes;
  choice.piece_bytes = lines                            ? kLinesBytes
                       : one_message                    ? kStreamBytes
                       : query.network                  ? network_piece_bytes(choice.algorithm, query)
                       : exchange                       ? shared_among(ranks, kExchangePieceBytes)
                       : choice.algorithm == "two_shot" ? shared_among(ranks, kPieceBytes)
                       : copied                         ? kCopiedPieceBytes
                                                        : kPieceBytes;
  choice.loop.skew = 1;
  choice.loop.order = StageOrder::earliest_first;
  return choice;
}

}  // namespace tutti
