#include "src/tuner/chunks.h"

#include <algorithm>
#include <bit>

namespace tutti {
namespace {

constexpr std::uint64_t kChunkBytes = 64 * 1024;          // Two ranks: the slots stay in the L2 cache.
constexpr std::uint64_t kExchangeChunkBytes = 32 * 1024;  // Exchange lanes, which have twice as many slots.
// Two ranks, without reductions: a copying rank has few slots in its cache.
constexpr std::uint64_t kCopiedChunkBytes = 32 * 1024;
constexpr std::uint64_t kMaxCopiedBytes = 8192 * 1024;  // Above, buffers are in no cache.
constexpr std::uint64_t kMinChunkBytes = 16 * 1024;     // Below, flags cost more than caches gain.
constexpr std::uint64_t kStreamBytes = 128 * 1024;
constexpr std::uint64_t kNetworkChunkBytes = 128 * 1024;  // Few system calls; larger chunks leave the caches.
// Hierarchical algorithms, in which a rank has few remote peers.
constexpr std::uint64_t kAcrossChunkBytes = 64 * 1024;
constexpr std::uint64_t kShardChunkBytes = 32 * 1024;  // Hierarchical all-reduce: per remote host.

// The more lanes a rank has, the smaller the chunks, so that all slots fit the cache.
std::uint64_t shared_among(Rank ranks, std::uint64_t chunk_bytes) {
  return std::max(chunk_bytes / std::bit_ceil(ranks - 1), kMinChunkBytes);
}

// Hierarchical all-reduce: messages inside a host are whole shards, and messages between hosts are parts of them.
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
