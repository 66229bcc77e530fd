// Table for devices. Its limits are where predictions (src/model/gpu_kernel.h, tutti explain --topology dgx-h100)
// change sides or did so before one H200 had measured the instructions of a call, or from published measurements of
// other software. They stay until GPUs with NVLink have measured both sides.
#include <algorithm>

#include "src/tuner/channels.h"
#include "src/tuner/choose_in_domain.h"
#include "src/tuner/choose_over_hosts.h"

namespace tutti {
namespace {

constexpr std::uint64_t kOneShotBytes = 256 * kKiB;  // Total bytes that a rank sends.
constexpr std::uint64_t kMaxLlBytes = 64 * kKiB;     // Algorithms that send whole blocks to several ranks.
// Broadcasts and reductions to a root over NVLinks: sizes up to which direct, a tree with LL, and a tree are predicted
// to be the fastest. A chain is, for larger ones.
constexpr std::uint64_t kMaxDirectOfRootBytes = 128 * kKiB;
constexpr std::uint64_t kMaxLlOfTreeBytes = 1024 * kKiB;
constexpr std::uint64_t kMaxTreeBytes = 8192 * kKiB;
// Size from which an all-to-all is predicted to gain from accesses to peers' buffers.
constexpr std::uint64_t kMinMappedExchangeBytes = 16 * 1024 * kKiB;
// two_shot over NVLinks: size up to which LL is predicted to beat Simple, and two_shot_mapped.
constexpr std::uint64_t kMaxLlInPartsBytes = 1024 * kKiB;
constexpr std::uint64_t kMappedBytes = 64 * kKiB;  // Below, two flag rounds cost more than a copy.
// Sizes at which two_shot_staged is predicted to beat two_shot and two_shot_mapped, for 8 GPUs with NVLink. Between two
// ranks on one H200, whose memory limited both, it was 1.15 times as fast as two_shot from 1 to 64 MiB.
constexpr std::uint64_t kMinStagedBytes = 640 * kKiB;
constexpr std::uint64_t kMaxStagedBytes = 2048 * kKiB;
// All-gathers, reduce-scatters and all-to-alls of communicators with few lanes: minimum total over the ranks.
constexpr std::uint64_t kMinStagedBlocksBytes = 1024 * kKiB;
// switch_mapped is predicted to beat switch_staged from this size on, and between fewer ranks two_shot_mapped.
constexpr std::uint64_t kMinSwitchMappedBytes = 8192 * kKiB;
constexpr std::uint64_t kMinSwitchMappedOfFewBytes = 4096 * kKiB + 1;
constexpr Rank kMinSwitchMappedRanks = 4;
constexpr std::uint64_t kStagedChannelBytes = 16 * kKiB;
constexpr std::uint32_t kFullRingChannels = 24;
constexpr std::uint64_t kPositionGranule = 16 * kKiB;
// Positions of algorithms between hosts. Only adjacent stages of tree_staged share scratch.
constexpr std::uint32_t kPositionsOfHosts = 6, kPositionsOfTree = 4;
// Slot size of LL128 lanes. LL128 is not chosen automatically until it is measured.
constexpr std::uint64_t kLl128ChunkBytes = 7680;
constexpr std::uint64_t kSimpleChannelBytes = 64 * kKiB;
// Part of a block for a channel that moves blocks of all ranks along rails. Between hosts, long messages are faster
// than many channels: the thread that sends them needs a microsecond for each.
constexpr std::uint64_t kBlockOnRailsBytes = 32 * kKiB;
constexpr std::uint64_t kSumOverHostsBytes = 512 * kKiB, kTreeSumBytes = 2048 * kKiB;
// Channels in the ring between hosts, whose chunks overlap, and bytes per channel of larger sums, which use more.
constexpr std::uint64_t kFewStagedChannels = 12, kMoreStagedChannelBytes = 32768 * kKiB;
// The same, if messages have a block for each host or each rank of a host: total over these blocks.
constexpr std::uint64_t kForwardedBytes = 16 * kKiB;
constexpr std::uint64_t kRingBytes =
    32 * kKiB;  // Total over all ranks; above, link bandwidth matters more than the number of rounds.
constexpr std::uint64_t kNetworkBytes = 128 * kKiB;
constexpr std::uint64_t kRoundBytes = 64 * kKiB;  // Bytes that a network transfers in the time of one round.

// True if one round of whole blocks beats two rounds of parts. With two ranks both send the same amount, but parts can
// be summed while others are in transit.
bool one_round_is_faster(const Query& query) {
  const std::uint64_t more_bytes = query.block_bytes * (query.problem.ranks - 2);
  return query.block_bytes <= kNetworkBytes && more_bytes <= kRoundBytes;
}

// Over NVLinks, LL is predicted to be faster than Simple for few chunks: where lanes have a slot for each message of
// the call.
std::uint64_t max_ll_bytes(const Query& query, std::string_view algorithm) {
  if (!query.on_nvlinks) return kMaxLlBytes;
  const std::uint64_t slots = ll_lane_bytes(query);
  const std::uint64_t bytes = algorithm == "two_shot"      ? std::min(slots * query.problem.ranks, kMaxLlInPartsBytes)
                              : algorithm == "direct"      ? slots
                              : algorithm == "binary_tree" ? kMaxLlOfTreeBytes
                                                           : 0;
  return std::max(bytes, kMaxLlBytes);
}

// True if LL is predicted to be faster than accesses to peers' buffers, which exchange addresses first.
bool prefers_ll(const Query& query, std::string_view algorithm) {
  return query.on_nvlinks && query.protocol.empty() && query.block_bytes <= max_ll_bytes(query, algorithm);
}

// True if switches serve the staging ring and calls of this size are predicted to be faster by them.
bool prefers_switches(const Query& query) {
  const Rank ranks = query.problem.ranks;
  return query.by_switches && has_ring(query, kSwitchStaged) && permits_simple(query) && ranks >= kMinSwitchRanks &&
         ranks <= kFewRanks && query.block_bytes >= kMinStagedBytes;
}

// True if the staging ring serves Simple calls, in the memory of each peer.
bool has_usable_ring(const Query& query) {
  const Rank ranks = query.problem.ranks;
  return has_ring(query, kSwitchStaged) && permits_simple(query) && ranks > 1 && ranks <= kFewRanks;
}

// True for a further communicator. For large calls, a channel with lanes is as fast as 1.25 of the ring, and links
// limit more channels than kFullRingChannels.
bool has_few_lanes(const Query& query) {
  const std::uint32_t ring_channels = std::min(query.ring.channels, kFullRingChannels);
  return 5 * usable_channels(query, query.lane_channels) <= 4 * usable_channels(query, ring_channels);
}

// Algorithm for an all-reduce that is predicted to be the fastest, if it uses the staging ring; else "".
std::string_view on_ring(const Query& query) {
  if (!has_usable_ring(query)) return "";
  if (query.block_bytes < std::min(kMinStagedBytes, max_ll_bytes(query, "two_shot") + 1)) return "";
  if (prefers_switches(query)) return kSwitchStaged;
  const bool by_ring = query.block_bytes <= kMaxStagedBytes || (has_few_lanes(query) && !query.mapped);
  return by_ring ? "two_shot_staged" : "";
}

// The same for all-gathers, reduce-scatters and all-to-alls that cannot use the buffers, or gain nothing by that.
bool moves_blocks_on_ring(const Query& query) {
  return has_usable_ring(query) && has_few_lanes(query) && query.compression == CompressionFormat::none &&
         query.block_bytes * query.problem.ranks >= kMinStagedBlocksBytes;
}

// Size from which switches in the buffers are predicted to be faster than the staging ring.
std::uint64_t min_switch_mapped_bytes(const Query& query) {
  return query.problem.ranks < kMinSwitchRanks ? kMinSwitchMappedOfFewBytes : kMinSwitchMappedBytes;
}

// True if sums by switches in the buffers are predicted to be the fastest.
bool prefers_switches_in_buffers(const Query& query) {
  const Rank ranks = query.problem.ranks;
  if (!query.mapped || !query.by_switches_mapped || !permits_simple(query)) return false;
  if (ranks < kMinSwitchMappedRanks || ranks > kFewRanks) return false;
  return query.block_bytes >= min_switch_mapped_bytes(query);
}

std::string_view all_reduce(const Query& query) {
  const Rank ranks = query.problem.ranks;
  if (query.compression != CompressionFormat::none)
    return "two_shot";  // If each rank computed whole sums, results would differ in bits.
  if (query.network && ranks <= kFewRanks) return one_round_is_faster(query) ? "one_shot" : "two_shot";
  const bool once = query.block_bytes * (ranks - 1) <= kOneShotBytes && query.block_bytes <= kMaxLlBytes;
  if (once) return ranks <= kFewRanks ? "one_shot" : "recursive_doubling";
  if (prefers_switches_in_buffers(query)) return kSwitchMapped;
  const std::string_view staged = on_ring(query);
  if (!staged.empty()) return staged;
  return query.mapped && !prefers_ll(query, "two_shot") ? "two_shot_mapped" : "two_shot";
}

// If links connect only some pairs, messages between all ranks would share links, or use PCI.
std::string_view along_links(const Query& query) {
  const bool whole = query.problem.collective == Collective::all_reduce || has_root(query.problem.collective);
  if (!query.only_rings || query.block_bytes * (whole ? 1 : query.problem.ranks) <= kRingBytes) return "";
  switch (query.problem.collective) {
    case Collective::all_reduce: return query.problem.groups.empty() ? "ring" : "hierarchical_ring";
    case Collective::all_gather:
    case Collective::reduce_scatter: return query.problem.groups.empty() ? "ring" : "";
    case Collective::broadcast: return query.problem.groups.empty() ? "chain" : "";
    case Collective::reduce: return query.problem.groups.empty() ? "chain" : "hierarchical_tree";
    default: return "";
  }
}

// Broadcast, or reduction to a root. direct passes all bytes through the links of the root.
// Between 8 ranks on one H200, split_mapped took 135 us for 256 KiB.
std::string_view to_or_from_root(const Query& query, bool mapped) {
  const bool broadcasts = query.problem.collective == Collective::broadcast;
  if (broadcasts && prefers_switches(query)) return kSwitchStaged;
  const std::string_view in_place = mapped && broadcasts ? "split_mapped" : "";
  if (query.problem.ranks > kFewRanks) return in_place.empty() ? "binary_tree" : in_place;
  if (!query.on_nvlinks || query.compression != CompressionFormat::none) return in_place.empty() ? "direct" : in_place;
  if (query.block_bytes > kMaxLlOfTreeBytes && !in_place.empty()) return in_place;
  if (query.problem.ranks == 2 || query.block_bytes <= kMaxDirectOfRootBytes) return "direct";
  return query.block_bytes <= kMaxTreeBytes ? "binary_tree" : "chain";
}

std::string_view algorithm_for(const Query& query) {
  const std::string_view round = along_links(query);
  if (!round.empty()) return round;
  const std::string_view over_hosts = query.network ? choose_over_hosts(query) : "";
  if (!over_hosts.empty()) return over_hosts;
  const std::string_view in_domain = choose_in_domain(query);
  if (!in_domain.empty()) return in_domain;
  const bool mapped = query.mapped && query.compression == CompressionFormat::none &&
                      query.block_bytes * query.problem.ranks >= kMappedBytes;
  const bool in_place = mapped && !prefers_ll(query, "direct");
  switch (query.problem.collective) {
    case Collective::all_reduce: return all_reduce(query);
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return in_place ? "direct_mapped" : !mapped && moves_blocks_on_ring(query) ? "direct_staged" : "direct";
    case Collective::all_to_all:
      if (in_place && (!query.on_nvlinks || query.block_bytes >= kMinMappedExchangeBytes)) return "direct_mapped";
      return moves_blocks_on_ring(query) ? "direct_staged" : "direct";
    case Collective::broadcast:
    case Collective::reduce: return to_or_from_root(query, mapped);
    case Collective::gather:
    case Collective::scatter: return "direct";
  }
  return "";
}

Protocol protocol_for(const Query& query, std::string_view algorithm) {
  if (query.network && query.protocol.empty())
    return prefers_ll_over_hosts(query, algorithm) ? Protocol::ll : Protocol::simple;
  if (query.protocol.empty() && (query.compression != CompressionFormat::none || algorithm.ends_with("_mapped")))
    return Protocol::simple;
  if (query.protocol.empty())
    return query.block_bytes <= max_ll_bytes(query, algorithm) ? Protocol::ll : Protocol::simple;
  return query.protocol == "LL" ? Protocol::ll : query.protocol == "LL128" ? Protocol::ll128 : Protocol::simple;
}

// Maximum channels of an algorithm by its memory.
std::uint32_t max_channels_of(const Query& query, const Choice& choice) {
  if (choice.mapped) return query.thread_blocks;
  const std::uint32_t lanes = lane_channels(query, choice.algorithm);
  if (query.network && has_inline_flags(choice.protocol)) return std::clamp(query.remote_ll_channels, 1U, lanes);
  if (!choice.staged) return lanes;
  return std::max(is_staged_over_hosts(choice.algorithm) ? std::min(query.ring.channels, lanes) : query.ring.channels,
                  1U);
}

std::uint32_t positions_of(const Query& query, const Choice& choice) {
  if (choice.algorithm == kTreeStaged) return kPositionsOfTree;
  return choice.algorithm == kHostStaged ? kPositionsOfHosts : query.ring.positions;
}

// Memory that a chunk on a channel has. Between hosts, fewer channels have longer positions.
std::uint64_t position_bytes(const Query& query, const Choice& choice) {
  if (!is_staged_over_hosts(choice.algorithm) || query.ring.channels == 0) return query.ring.position_bytes;
  const std::uint64_t bytes = query.ring.bytes() / (max_channels_of(query, choice) * positions_of(query, choice));
  return bytes / kPositionGranule * kPositionGranule;
}

bool gathers_or_scatters(const Query& query) {
  return query.problem.collective == Collective::all_gather || query.problem.collective == Collective::reduce_scatter;
}

// Channels for a block, whatever their maximum. Between hosts, a chunk in the ring is a short part of each block, so
// that chunks on other channels are faster than several on one.
std::uint64_t channels_for_block(const Query& query, const Choice& choice) {
  if (is_staged_over_hosts(choice.algorithm) && gathers_or_scatters(query)) {
    const std::uint64_t part =
        std::clamp<std::uint64_t>(choice.chunk_bytes / query.problem.ranks, 1, kStagedChannelBytes);
    return (query.block_bytes + part - 1) / part;
  }
  const bool on_rails = choice.remote_peers != RemotePeers::all;
  if (on_rails && query.problem.collective == Collective::all_to_all)
    return query.block_bytes / (kForwardedBytes / std::max<std::size_t>(query.problem.groups[0].size(), kFewRanks));
  if (query.network && has_inline_flags(choice.protocol) && !query.problem.groups.empty())
    return ll_channels_over_hosts(query);
  const bool moves_blocks = gathers_or_scatters(query) || sends_sums_of_hosts(choice.algorithm);
  if (on_rails && query.problem.collective == Collective::all_reduce && !moves_blocks)
    return query.block_bytes / (choice.algorithm == kTreeStaged ? kTreeSumBytes : kSumOverHostsBytes);
  return query.block_bytes / (choice.staged                                         ? kStagedChannelBytes
                              : has_inline_flags(choice.protocol) && !choice.mapped ? kLlChannelBytes
                              : on_rails && moves_blocks                            ? kBlockOnRailsBytes
                                                                                    : kSimpleChannelBytes);
}

std::uint64_t wanted_channels(const Query& query, const Choice& choice) {
  const std::uint64_t channels = channels_for_block(query, choice);
  if (!is_staged_over_hosts(choice.algorithm)) return channels;
  const bool sums = query.problem.collective == Collective::all_reduce;
  return std::max(std::min(channels, kFewStagedChannels), sums ? query.block_bytes / kMoreStagedChannelBytes : 0);
}

}  // namespace

bool uses_rank_order(std::string_view algorithm) {
  return algorithm == "ring" || algorithm == "chain" || algorithm == "hierarchical_ring" ||
         algorithm == "hierarchical_tree";
}

bool has_ring(const Query& query, std::string_view algorithm) {
  return query.ring.channels > 0 && query.network == is_staged_over_hosts(algorithm);
}

std::string_view switch_algorithm(const Query& query) {
  const auto is_mapped = [](const Algorithm* algorithm) { return algorithm->name() == kSwitchMapped; };
  const bool exists = std::any_of(query.catalogue.begin(), query.catalogue.end(), is_mapped);
  const Rank blocks = query.problem.collective == Collective::all_reduce ? 1 : query.problem.ranks;
  const bool large = query.block_bytes * blocks >= min_switch_mapped_bytes(query);
  // switch_staged ignores the protocol. switch_mapped would cut its chunks to the slots of LL.
  return exists && large && permits_simple(query) && query.mapped && query.by_switches_mapped ? kSwitchMapped
                                                                                              : kSwitchStaged;
}

void limit_channels(const Query& query, Choice& choice) {
  if (query.channels != 0) {
    choice.channels = query.channels;
  } else {
    choice.channels = std::max(choice.channels, query.min_channels);
    if (query.max_channels != 0) choice.channels = std::min(choice.channels, query.max_channels);
  }
  choice.channels = std::min(choice.channels, query.thread_blocks);
  if (!choice.mapped) choice.channels = std::min(choice.channels, max_channels_of(query, choice));
  // An equal number of channels per ring order, since all rings have the same bandwidth.
  const std::uint32_t orders = uses_rank_order(choice.algorithm) ? query.orders : 1;
  if (query.channels == 0 && choice.channels > orders) choice.channels -= choice.channels % orders;
}

Choice choose_for_gpus(const Query& query) {
  Choice choice;
  choice.algorithm = query.algorithm.empty() ? algorithm_for(query) : query.algorithm;
  choice.mapped = choice.algorithm.ends_with("_mapped");
  choice.staged = choice.algorithm.ends_with("_staged");
  choice.by_switches =
      ((choice.algorithm == kSwitchStaged || is_staged_over_hosts(choice.algorithm)) && query.by_switches) ||
      (choice.algorithm == kSwitchMapped && query.by_switches_mapped);
  choice.compression = query.compression;
  choice.protocol = choice.staged ? Protocol::simple : protocol_for(query, choice.algorithm);
  const bool small = has_inline_flags(choice.protocol);
  choice.chunk_bytes = choice.staged                        ? position_bytes(query, choice)
                       : choice.protocol == Protocol::ll128 ? kLl128ChunkBytes
                       : small                              ? kLlChunkBytes
                                                            : query.slot_bytes;
  choice.remote_peers = remote_peers(query, choice.algorithm);
  const std::uint64_t max_channels = std::min(query.thread_blocks, max_channels_of(query, choice));
  choice.channels =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted_channels(query, choice), 1, max_channels));
  limit_channels(query, choice);
  // LlCall runs the stages of a chunk one after the other. On an H200, run_plan took three times as long for two chunks
  // of LL that overlapped.
  choice.loop.skew = choice.protocol == Protocol::ll ? 0 : 1;
  choice.loop.order = StageOrder::earliest_first;
  if (choice.staged) choice.loop.ring = positions_of(query, choice);
  return choice;
}

}  // namespace tutti
