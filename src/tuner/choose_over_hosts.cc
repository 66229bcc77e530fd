// Limits are where predictions change sides (tutti explain --topology dgx-h100 --hosts N), for 2 to 64 hosts of 8 GPUs
// with a port each.
#include "src/tuner/choose_over_hosts.h"

#include <algorithm>

#include "src/tuner/channels.h"

namespace tutti {
namespace {

constexpr std::size_t kFewHosts = 4;
// Sums that are sent to all hosts: bytes that a rank sends between hosts, and maximum size. Larger sums of several
// hosts use recursive doubling between them, up to a size.
constexpr std::uint64_t kWholeSumBytes = 1024 * kKiB, kMaxWholeSumBytes = 512 * kKiB;
constexpr std::uint64_t kMaxDoublingBytes = 512 * kKiB;
// The same on hosts, or NVLink domains, of more than kFewRanks ranks whose switches add: bytes that a rank sends
// inside.
constexpr std::uint64_t kWholeSumBytesInside = 256 * kKiB;
// Calls by LL: maximum messages of kLlChannelBytes that a rank sends between hosts. Above, more hosts than
// kMaxSeveralHosts use recursive doubling, up to a size that grows with their number.
constexpr std::uint64_t kMaxLlMessages = 31;
constexpr std::uint64_t kLlDoublingBytesPerHost = 512;
// Sums of which each host adds a part, with messages to all hosts: size times the number of hosts. Between 3 and
// kFewHosts hosts, of any size.
constexpr std::uint64_t kStagedSumBytes = 48 * 1024 * kKiB;
// More hosts than these use recursive doubling up to a size: messages to all hosts take long.
constexpr std::size_t kMaxHostsOfParts = 32;
constexpr std::uint64_t kDoublingBytesOfMany = 128 * kKiB;
// From this size on, more than 2 hosts use trees, even if there are few. Messages of trees do not get shorter.
constexpr std::uint64_t kTreeSumBytesOfFew = 32 * 1024 * kKiB;
// More hosts than these have the limits that end with OfMany.
constexpr std::size_t kMaxSeveralHosts = 16;
// Blocks of all-gathers and reduce-scatters that the switches of hosts serve: maximum total over the hosts. All blocks
// on hosts of more than kFewRanks ranks, whose lanes have few channels.
constexpr std::uint64_t kMaxStagedBlocksBytes = 1024 * kKiB, kMaxStagedBlocksBytesOfMany = 2048 * kKiB;
// Recursive doubling of all ranks: times the number of hosts, or for many hosts the second size.
constexpr std::uint64_t kFlatSumBytes = 128 * kKiB, kFlatSumBytesOfMany = 4 * kKiB;
// Blocks that are sent directly, with a message to each rank of other hosts, between 2, several and many hosts.
constexpr std::uint64_t kDirectBytes = 16 * kKiB, kDirectBytesOfSeveral = 32 * kKiB, kDirectBytesOfMany = 4 * kKiB;
// Blocks that a rank sends to all others on its rail, instead of around a ring: total over the hosts. Between several
// hosts also large blocks, which fill the slots along a rail.
constexpr std::uint64_t kMaxRailBytes = 4096 * kKiB, kMaxRailBytesOfMany = 512 * kKiB;
constexpr std::uint64_t kLargeRailBlockBytes = 2048 * kKiB;
// From or to a root: bytes between hosts up to which all ranks communicate with the root, and size up to which more
// than 3 hosts use a binary tree, which does not distinguish hosts.
constexpr std::uint64_t kDirectBytesFromRoot = 3072 * kKiB, kDirectBytesToRoot = 1024 * kKiB;
constexpr std::uint64_t kMaxTreeBytesOfHosts = 256 * kKiB;
// Sums to a root along chains inside hosts and trees of hosts: minimum hosts, size times the number of hosts above
// which they are used, and maximum size per host.
constexpr std::size_t kMinHostsOfTreeToRoot = 8;
constexpr std::uint64_t kMinTreeBytesToRoot = 2048 * kKiB, kMaxTreeBytesToRoot = 512 * kKiB;
constexpr Rank kMaxDirectRanksOfRoot = 640;  // With more, a tree sends fewer messages in sequence.
// All-to-all in the scratch of the ranks of a host: maximum block between 2 hosts of at most kFewRanks ranks.
constexpr std::uint64_t kMaxStagedBlockBytesOfTwo = 96 * kKiB;
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

// Each block crosses a host's link once. Lanes to partners have longer slots and more channels.
std::string_view once_between_hosts(const Query& query) {
  return remote_peers(query, "host_ring") > remote_peers(query, "hierarchical") ? "host_ring" : "hierarchical";
}

// True if the switches of each host serve this algorithm, and its channels are along rails.
bool has_switches(const Query& query, std::string_view algorithm) {
  return query.by_switches && permits_simple(query) && has_ring(query, algorithm) &&
         query.problem.groups[0][0] >= kMinSwitchRanks && supports(query, algorithm) &&
         remote_peers(query, algorithm) != RemotePeers::all;
}

bool is_whole_sum(const Query& query, std::size_t hosts) {
  return query.block_bytes * (hosts - 1) <= kWholeSumBytes && query.block_bytes <= kMaxWholeSumBytes;
}

bool is_large_host(const Query& query) { return query.problem.groups[0][0] > kFewRanks; }

// The algorithm for a call by LL; empty: Simple is predicted to be faster, or there are no lanes of LL.
std::string_view choose_ll(const Query& query) {
  if (query.compression != CompressionFormat::none || (!query.protocol.empty() && query.protocol != "LL")) return "";
  const bool sums = query.problem.collective == Collective::all_reduce;
  const std::string_view first = sums ? "host_one_shot" : "hierarchical";
  if (!has_ll_over_hosts(query, first)) return "";
  const std::size_t hosts = query.problem.groups[0].size();
  const std::uint64_t channels = ll_channels_over_hosts(query);
  const bool fits = channels <= usable_channels(query, std::min(query.remote_ll_channels, lane_channels(query, first)));
  if (fits && channels * (hosts - 1) <= kMaxLlMessages) return first;
  const bool doubles = sums && fits && hosts > kMaxSeveralHosts && query.block_bytes <= kLlDoublingBytesPerHost * hosts;
  if (doubles && has_ll_over_hosts(query, "host_doubling")) return "host_doubling";
  return query.protocol.empty() ? "" : first;
}

// Empty: sums are large.
std::string_view small_sum(const Query& query, std::size_t hosts) {
  if (!supports(query, "host_one_shot")) {
    const bool flat =
        query.problem.ranks > kFewRanks && query.block_bytes <= std::max(kFlatSumBytes / hosts, kFlatSumBytesOfMany);
    return flat ? "recursive_doubling" : "";
  }
  if (is_whole_sum(query, hosts)) return "host_one_shot";
  const bool can_double = hosts > kFewHosts && remote_peers(query, "host_doubling") != RemotePeers::all;
  return can_double && query.block_bytes <= kMaxDoublingBytes ? "host_doubling" : "";
}

bool prefers_tree(const Query& query, std::size_t hosts) {
  if (query.problem.groups.size() != 1 || remote_peers(query, "host_tree") != RemotePeers::partners) return false;
  return hosts > kFewHosts || (hosts > 2 && query.block_bytes >= kTreeSumBytesOfFew);
}

std::string_view all_reduce(const Query& query, std::size_t hosts) {
  const bool grouped = !query.problem.groups.empty();
  if (grouped && has_switches(query, kTreeStaged)) {
    const std::uint64_t inside = query.block_bytes * (query.problem.groups[0][0] - 1);
    const bool whole = is_whole_sum(query, hosts) && (!is_large_host(query) || inside <= kWholeSumBytesInside);
    if (whole) return "host_one_shot";
    if (hosts > kMaxHostsOfParts && query.block_bytes <= kDoublingBytesOfMany &&
        remote_peers(query, "host_doubling") != RemotePeers::all)
      return "host_doubling";
    const bool few = hosts > 2 && hosts <= kFewHosts;
    const bool by_parts = few || (query.block_bytes * hosts <= kStagedSumBytes && hosts <= kMaxStagedHosts);
    return by_parts && has_switches(query, kHostStaged) ? kHostStaged : kTreeStaged;
  }
  const std::string_view small = small_sum(query, hosts);
  if (!small.empty()) return small;
  if (!grouped) return "";
  return prefers_tree(query, hosts) ? "host_tree" : once_between_hosts(query);
}

std::uint64_t max_direct_bytes(std::size_t hosts) {
  if (hosts > kMaxSeveralHosts) return kDirectBytesOfMany;
  return hosts > 2 ? kDirectBytesOfSeveral : kDirectBytes;
}

bool stages_blocks(const Query& query, std::size_t hosts) {
  const std::uint64_t max = hosts > kMaxSeveralHosts ? kMaxStagedBlocksBytesOfMany : kMaxStagedBlocksBytes;
  const bool suits = query.block_bytes * hosts <= max || is_large_host(query);
  return suits && hosts <= kMaxStagedHosts && has_switches(query, kHostStaged);
}

std::string_view between_all(const Query& query, std::size_t hosts) {
  if (query.compression != CompressionFormat::none) return once_between_hosts(query);
  if (stages_blocks(query, hosts)) return kHostStaged;
  if (query.block_bytes <= max_direct_bytes(hosts)) return "direct";
  const bool many = hosts > kMaxSeveralHosts;
  const bool suits = query.block_bytes * hosts <= (many ? kMaxRailBytesOfMany : kMaxRailBytes) ||
                     (!many && query.block_bytes >= kLargeRailBlockBytes);
  const bool at_once = suits && remote_peers(query, "hierarchical") != RemotePeers::all;
  return at_once ? "hierarchical" : once_between_hosts(query);
}

std::string_view from_or_to_root(const Query& query) {
  const Rank ranks = query.problem.ranks, remote = ranks - query.problem.groups[0][0];  // The root's host may differ.
  const bool sends = query.problem.collective == Collective::broadcast;
  const std::uint64_t direct = sends ? kDirectBytesFromRoot : kDirectBytesToRoot;
  if (ranks <= kMaxDirectRanksOfRoot && query.block_bytes * remote <= direct) return "direct";
  const std::size_t hosts = query.problem.groups[0].size();
  const bool medium = hosts >= kMinHostsOfTreeToRoot && query.block_bytes * hosts > kMinTreeBytesToRoot &&
                      query.block_bytes <= kMaxTreeBytesToRoot * hosts;
  if (medium && supports(query, "hierarchical_tree")) return "hierarchical_tree";
  return query.block_bytes <= kMaxTreeBytesOfHosts && hosts > 3 ? "binary_tree" : "hierarchical";
}

bool stages_all_to_all(const Query& query) {
  const std::size_t hosts = query.problem.groups[0].size();
  const bool suits = hosts > 2 || query.block_bytes <= kMaxStagedBlockBytesOfTwo || is_large_host(query);
  return suits && hosts <= kMaxStagedHosts && has_switches(query, kHostStaged);
}

std::string_view all_to_all(const Query& query) {
  if (query.compression == CompressionFormat::none && stages_all_to_all(query)) return kHostStaged;
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
  const std::string_view by_ll = choose_ll(query);
  if (!by_ll.empty()) return by_ll;
  switch (query.problem.collective) {
    case Collective::all_reduce:
      if (!compressed) return all_reduce(query, hosts);
      return flat ? "" : prefers_tree(query, hosts) ? "host_tree" : once_between_hosts(query);
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

bool has_ll_over_hosts(const Query& query, std::string_view algorithm) {
  if (query.remote_ll_channels == 0 || remote_peers(query, algorithm) == RemotePeers::all ||
      !supports(query, algorithm))
    return false;
  const std::size_t hosts = query.problem.groups[0].size();
  const bool hierarchical = algorithm == "hierarchical" && !is_large_host(query);
  switch (query.problem.collective) {
    case Collective::all_reduce: return sends_sums_of_hosts(algorithm);
    case Collective::all_gather:
    case Collective::reduce_scatter: return hierarchical && hosts <= kFewHosts;
    case Collective::broadcast:
    case Collective::reduce: return hierarchical && hosts == 2;
    default: return false;
  }
}

std::uint64_t ll_channels_over_hosts(const Query& query) {
  const std::uint64_t ranks = has_root(query.problem.collective) ? query.problem.groups[0][0] : 1;
  return (query.block_bytes + ranks * kLlChannelBytes - 1) / (ranks * kLlChannelBytes);
}

bool prefers_ll_over_hosts(const Query& query, std::string_view algorithm) {
  return query.network && choose_ll(query) == algorithm;
}

bool sends_sums_of_hosts(std::string_view algorithm) {
  return algorithm == "host_one_shot" || algorithm == "host_doubling";
}

}  // namespace tutti
