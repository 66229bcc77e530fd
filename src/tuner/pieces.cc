#include "src/tuner/pieces.h"

#include <algorithm>
#include <bit>

namespace tutti {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kPieceBytes = 64 * kKiB;          // Between two ranks: the slots stay in a level-2 cache.
constexpr std::uint64_t kExchangePieceBytes = 32 * kKiB;  // Of lanes that swap, which hold twice as many slots.
constexpr std::uint64_t kCopiedPieceBytes = 32 * kKiB;    // Between two: who only copies has few slots at hand.
constexpr std::uint64_t kMostCopiedBytes = 8192 * kKiB;   // Above, buffers are in no cache.
constexpr std::uint64_t kLeastPieceBytes = 16 * kKiB;     // Below, flags cost more than the caches give.
constexpr std::uint64_t kStreamBytes = 128 * kKiB;
constexpr std::uint64_t kNetworkPieceBytes = 128 * kKiB;  // Fewer system calls; longer ones leave the caches.
constexpr std::uint64_t kAcrossPieceBytes = 64 * kKiB;    // Over hosts, where a rank speaks with few others.
constexpr std::uint64_t kShardPieceBytes = 32 * kKiB;     // Of an all-reduce over hosts, to each other one.

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

std::uint64_t piece_bytes(const Query& query, std::string_view algorithm, Protocol protocol) {
  if (protocol == Protocol::lines) return kLinesBytes;
  const std::uint64_t bytes = message_bytes(query, query.wire);
  if (algorithm == "one_shot" && bytes <= kStreamBytes) return kStreamBytes;
  if (query.network) return network_piece_bytes(algorithm, query);
  const Collective collective = query.problem.collective;
  const Rank ranks = query.problem.ranks;
  const bool exchange =
      algorithm == "direct" && (collective == Collective::all_gather || collective == Collective::reduce_scatter ||
                                collective == Collective::all_to_all);
  if (exchange) return shared_among(ranks, kExchangePieceBytes);
  if (algorithm == "two_shot") return shared_among(ranks, kPieceBytes);
  const bool copied = ranks == 2 && !reduces(collective) && bytes <= kMostCopiedBytes;
  return copied ? kCopiedPieceBytes : kPieceBytes;
}

}  // namespace tutti
