// Limits are where predictions change sides (tutti explain --topology dgx-h100 --hosts N), for 2 to 64 hosts of 8 GPUs
// with a port each.
#include "src/tuner/choose_over_hosts.h"

#include <algorithm>
#include <bit>

#include "src/tuner/channels.h"

namespace tutti {
namespace {

constexpr std::size_t kFewHosts = 4;
// Sums that are sent to all hosts: bytes that a rank sends between hosts; the second size if recursive doubling between
// more than kFewHosts is on rails, but host_one_shot is not.
constexpr std::uint64_t kWholeSumBytes = 1024 * kKiB, kWholeSumBytesBesideDoubling = 512 * kKiB;
constexpr std::uint64_t kMaxDoublingBytes = 512 * kKiB;
// Blocks of all-gathers and reduce-scatters that the switches of hosts serve: minimum, and maximum total over the
// hosts. All-gathers of fewer than kFewHosts have another maximum.
constexpr std::uint64_t kMinStagedBlockBytes = 8 * kKiB + 1, kMaxStagedBlocksBytes = 4096 * kKiB;
constexpr std::uint64_t kMaxStagedBytesOfFew = 256 * kKiB;
// two_shot of all ranks, on more than kFewHosts.
constexpr Rank kMaxTwoShotRanks = 64;
constexpr std::uint64_t kMinTwoShotBytes = 64 * kKiB, kMaxTwoShotBytes = 2048 * kKiB;
// Recursive doubling of all ranks: times the number of hosts, or for many hosts the second size.
constexpr std::uint64_t kFlatSumBytes = 128 * kKiB, kFlatSumBytesOfMany = 4 * kKiB;
// An all-reduce around a ring of hosts beats halving and doubling between hosts if a channel sends messages of this
// size, or of the second one if the number of hosts is no power of two.
constexpr std::uint64_t kRingMessageBytes = 32 * kKiB, kOddRingMessageBytes = 10 * kKiB;
// Blocks that are sent directly; the second size for 3 to kMaxSeveralHosts hosts.
constexpr std::uint64_t kDirectBytes = 16 * kKiB, kDirectBytesOfSeveral = 32 * kKiB;
constexpr std::size_t kMaxSeveralHosts = 24;
// Blocks that a rank sends to all others on its rail, instead of around a ring: total over the hosts.
constexpr std::uint64_t kMaxRailBytes = 4096 * kKiB;
// From or to a root: bytes between hosts up to which all ranks communicate with the root, and size up to which more
// than 3 hosts use a binary tree, which does not distinguish hosts.
constexpr std::uint64_t kDirectBytesFromRoot = 3072 * kKiB, kDirectBytesToRoot = 1024 * kKiB;
constexpr std::uint64_t kMaxTreeBytesOfHosts = 256 * kKiB;
constexpr Rank kMaxDirectRanksOfRoot = 640;  // With more, a tree sends fewer messages in sequence.
// All-to-all by ranks that forward the blocks of their hosts: minimum ranks of a host, and of all hosts, which depends
// on the size of a host.
constexpr Rank kMinForwardingRanks = 4, kMinForwardedRanks = 32, kMinForwardedRanksOfSmallHosts = 40;
// A message has blocks of all hosts, or of all ranks of a host. Slots hold too little of each if there are more.
constexpr std::size_t kMaxForwardedBlocks = 64;
constexpr std::uint64_t kCompressedFlatBytes = 4 * kKiB;

bool supports(const Query& query, std::string_view name) {
  const auto does = [&](const Algorithm* each) { return each->name() == name && each->supports(query.problem); };
  return std::any_of(query.catalogue.begin(), query.catalogue.end(), does);
}

// Each block crosses a host's link once. An algorithm with more channels, because its lanes are along rails, is
// preferred.
std::string_view once_between_hosts(const Query& query) {
  return lane_channels(query, "host_ring") > lane_channels(query, "hierarchical") ? "host_ring" : "hierarchical";
}

// True if host_staged has switches in each host, and channels along rails.
bool has_switches(const Query& query, std::size_t hosts) {
  return query.by_switches && permits_simple(query) && hosts <= kMaxStagedHosts && has_ring(query, kHostStaged) &&
         query.problem.groups[0][0] >= kMinSwitchRanks && supports(query, kHostStaged) &&
         remote_peers(query, kHostStaged) != RemotePeers::all;
}

// Empty: sums are large.
std::string_view small_sum(const Query& query, std::size_t hosts) {
  if (!supports(query, "host_one_shot")) {
    const bool flat =
        query.problem.ranks > kFewRanks && query.block_bytes <= std::max(kFlatSumBytes / hosts, kFlatSumBytesOfMany);
    return flat ? "recursive_doubling" : "";
  }
  const std::uint64_t to_others = query.block_bytes * (hosts - 1);
  if (hosts <= kFewHosts) return to_others <= kWholeSumBytes ? "host_one_shot" : "";
  // Otherwise its partners have few channels.
  const bool can_double = remote_peers(query, "host_doubling") == RemotePeers::partners;
  const bool doubles = can_double && query.block_bytes <= kMaxDoublingBytes;
  const bool between = query.block_bytes >= kMinTwoShotBytes && query.block_bytes <= kMaxTwoShotBytes;
  if (between && query.problem.ranks <= kMaxTwoShotRanks)
    return doubles && std::has_single_bit(hosts) ? "host_doubling" : "two_shot";
  if (to_others <= (can_double ? kWholeSumBytesBesideDoubling : kWholeSumBytes)) return "host_one_shot";
  return doubles ? "host_doubling" : "";
}

bool prefers_ring(const Query& query, std::size_t hosts) {
  if (query.problem.groups.size() != 1 || hosts <= kFewHosts) return false;
  if (remote_peers(query, "host_ring") != RemotePeers::partners) return false;
  const std::uint64_t message = std::has_single_bit(hosts) ? kRingMessageBytes : kOddRingMessageBytes;
  return query.block_bytes >= message * query.problem.ranks * usable_channels(query, lane_channels(query, "host_ring"));
}

std::string_view all_reduce(const Query& query, std::size_t hosts) {
  const bool grouped = !query.problem.groups.empty();
  if (grouped && has_switches(query, hosts))
    return query.block_bytes * (hosts - 1) <= kWholeSumBytes ? "host_one_shot" : kHostStaged;
  const std::string_view small = small_sum(query, hosts);
  if (!small.empty()) return small;
  if (!grouped) return "";
  return prefers_ring(query, hosts) ? "host_ring" : once_between_hosts(query);
}

std::uint64_t max_direct_bytes(std::size_t hosts) {
  return hosts > 2 && hosts <= kMaxSeveralHosts ? kDirectBytesOfSeveral : kDirectBytes;
}

bool stages_blocks(const Query& query, std::size_t hosts) {
  const bool few = query.problem.collective == Collective::all_gather && hosts < kFewHosts;
  const std::uint64_t max = few ? kMaxStagedBytesOfFew : kMaxStagedBlocksBytes / hosts;
  return query.block_bytes >= kMinStagedBlockBytes && query.block_bytes <= max && has_switches(query, hosts);
}

std::string_view between_all(const Query& query, std::size_t hosts) {
  if (query.compression != CompressionFormat::none) return once_between_hosts(query);
  if (stages_blocks(query, hosts)) return kHostStaged;
  if (query.block_bytes <= max_direct_bytes(hosts)) return "direct";
  const bool at_once = hosts <= kMaxSeveralHosts && query.block_bytes * hosts <= kMaxRailBytes &&
                       remote_peers(query, "hierarchical") != RemotePeers::all;
  return at_once ? "hierarchical" : once_between_hosts(query);
}

std::string_view from_or_to_root(const Query& query) {
  const Rank ranks = query.problem.ranks, remote = ranks - query.problem.groups[0][0];  // The root's host may differ.
  const bool sends = query.problem.collective == Collective::broadcast;
  const std::uint64_t direct = sends ? kDirectBytesFromRoot : kDirectBytesToRoot;
  if (ranks <= kMaxDirectRanksOfRoot && query.block_bytes * remote <= direct) return "direct";
  const bool small = query.block_bytes <= kMaxTreeBytesOfHosts && query.problem.groups[0].size() > 3;
  return small ? "binary_tree" : "hierarchical";
}

std::string_view all_to_all(const Query& query) {
  const Rank size = query.problem.groups[0][0];
  const Rank needed = size < kFewRanks ? kMinForwardedRanksOfSmallHosts : kMinForwardedRanks;
  const bool few = query.problem.ranks < needed || size < kMinForwardingRanks;
  const bool many = std::max<std::size_t>(size, query.problem.groups[0].size()) > kMaxForwardedBlocks;
  if (few || many || query.compression != CompressionFormat::none) return "direct";
  const bool on_rails = remote_peers(query, "hierarchical") != RemotePeers::all;
  return on_rails && supports(query, "hierarchical") ? "hierarchical" : "direct";
}

}  // namespace

std::string_view choose_over_hosts(const Query& query) {
  const bool grouped = !query.problem.groups.empty();
  const bool compressed = query.compression != CompressionFormat::none;
  const std::size_t hosts = grouped ? query.problem.groups[0].size() : query.problem.ranks;
  const bool flat = !grouped || (compressed && query.block_bytes <= kCompressedFlatBytes);
  switch (query.problem.collective) {
    case Collective::all_reduce:
      if (!compressed) return all_reduce(query, hosts);
      return flat ? "" : once_between_hosts(query);
    case Collective::all_gather:
    case Collective::reduce_scatter: return flat ? "" : between_all(query, hosts);
    case Collective::broadcast:
    case Collective::reduce:
      if (flat) return "";
      return compressed ? once_between_hosts(query) : from_or_to_root(query);
    case Collective::all_to_all: return grouped ? all_to_all(query) : "";
    default: return "";
  }
}

bool sends_sums_of_hosts(std::string_view algorithm) {
  return algorithm == "host_one_shot" || algorithm == "host_doubling";
}

}  // namespace tutti
