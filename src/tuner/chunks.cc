#include "src/tuner/chunks.h"

#include <algorithm>
#include <bit>

namespace tutti {
namespace {

constexpr std::uint64_t kChunkBytes = 64 * 1024;          // Between two ranks: the slots stay in a level-2 cache.
constexpr std::uint64_t kExchangeChunkBytes = 32 * 1024;  // Of lanes that swap, which hold twice as many slots.
constexpr std::uint64_t kCopiedChunkBytes = 32 * 1024;    // Between two: who only copies has few slots at hand.
constexpr std::uint64_t kMaxCopiedBytes = 8192 * 1024;    // Above, buffers are in no cache.
constexpr std::uint64_t kMinChunkBytes = 16 * 1024;       // Below, flags cost more than the caches give.
constexpr std::uint64_t kStreamBytes = 128 * 1024;
constexpr std::uint64_t kNetworkChunkBytes = 128 * 1024;  // Fewer system calls; longer ones leave the caches.
constexpr std::uint64_t kAcrossChunkBytes = 64 * 1024;    // Over hosts, where a rank speaks with few others.
constexpr std::uint64_t kShardChunkBytes = 32 * 1024;     // Of an all-reduce over hosts, to each other one.

// The more lanes a rank has to others, the smaller their chunks, so that the slots still fit.
std::uint64_t shared_among(Rank ranks, std::uint64_t chunk_bytes) {
  return std::max(chunk_bytes / std::bit_ceil(ranks - 1), kMinChunkBytes);
}

// Of an all-reduce over hosts, messages within one are of a whole shard, and those between hosts of a part for each.
std::uint64_t network_chunk_bytes(std::string_view algorithm, const Query& query) {
  if (algorithm != "hierarchical" || query.problem.groups.empty())
    return shared_among(query.problem.ranks, kNetworkChunkBytes);
  if (query.problem.collective != Collective::all_reduce) return kAcrossChunkBytes;
  return std::min(kShardChunkBytes * query.problem.groups[0].size(), kNetworkChunkBytes);
}

}  // namespace

std::uint64_t chunk_bytes(const Query& query, std::string_view algorithm, Protocol protocol) {
  if (protocol == Protocol::ll) return kLlBytes;
  const std::uint64_t bytes = message_bytes(query, query.compression);
  if (algorithm == "one_shot" && bytes <= kStreamBytes) return kStreamBytes;
  if (query.network) return network_chunk_bytes(algorithm, query);
  const Collective collective = query.problem.collective;
  const Rank ranks = query.problem.ranks;
  const bool exchange =
      algorithm == "direct" && (collective == Collective::all_gather || collective == Collective::reduce_scatter ||
                                collective == Collective::all_to_all);
  if (exchange) return shared_among(ranks, kExchangeChunkBytes);
  if (algorithm == "two_shot") return shared_among(ranks, kChunkBytes);
  const bool copied = ranks == 2 && !reduces(collective) && bytes <= kMaxCopiedBytes;
  return copied ? kCopiedChunkBytes : kChunkBytes;
}

}  // namespace tutti
