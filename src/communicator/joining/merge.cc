#include "src/communicator/joining/merge.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/config.h"
#include "src/base/log.h"
#include "src/bootstrap/secrets.h"
#include "src/communicator/joining/own_host.h"
#include "src/topology/discover/file.h"

namespace tutti {
namespace {

// Digest of a host's topology from its first rank, by which ranks recognize identical hosts. Plain data of fixed width.
struct TopologyDigest {
  std::array<std::uint8_t, 24> hash{};
  std::uint64_t bytes = 0;  // Size of the packed topology; 0: unknown.

  auto operator<=>(const TopologyDigest&) const = default;
};
static_assert(sizeof(TopologyDigest) == 32);

Hosts hosts_of(const Bootstrap& bootstrap) {
  std::map<std::array<std::uint8_t, 16>, Rank> numbers, machines;
  std::vector<Rank> host_of;
  std::vector<Hosts::MachineShare> shares;
  std::vector<Location> locations;
  for (Rank peer = 0; peer < bootstrap.ranks(); ++peer) {
    const PeerRecord& record = bootstrap.peer(peer);
    host_of.push_back(numbers.try_emplace(record.host, peer).first->second);
    shares.push_back({machines.try_emplace(record.kernel, peer).first->second, std::max(1U, record.cpus), 0,
                      record.own_cpus, record.first_cpu, 0});
    locations.push_back(record.location);
  }
  Hosts hosts(host_of, std::move(shares));
  hosts.place(std::move(locations));
  return hosts;
}

std::string packed_view(const std::string& gpu) {
  Result<Topology> found = own_topology(gpu);
  if (!found.ok()) {
    log(LogLevel::warn, "the topology of this host stays unknown: %s", std::move(found).status().message().c_str());
    return "";
  }
  std::string view = packed(found.value());
  if (view.size() <= kMaxBroadcastBytes && fits_broadcast(found.value())) return view;
  log(LogLevel::warn, "the topology of this host stays unknown: it is too large to send");
  return "";
}

TopologyDigest digest_of(const std::string& view) {
  TopologyDigest made;
  made.bytes = view.size();
  const Digest whole = digest({}, {std::as_bytes(std::span(view))});
  std::copy_n(whole.begin(), made.hash.size(), made.hash.begin());
  return made;
}

void dump(const MergedTopology& merged) {
  if (config().topo_dump_file.empty()) return;
  const Status written = write_topology_file(config().topo_dump_file, expanded(merged));
  if (!written.ok()) log(LogLevel::warn, "TUTTI_TOPO_DUMP_FILE: %s", written.message().c_str());
}

}  // namespace

Result<Hosts> gather_hosts(Bootstrap& bootstrap, const Watch& watch) {
  Hosts hosts = hosts_of(bootstrap);
  const std::vector<Rank>& first_ranks = hosts.first_ranks();
  const Rank self = bootstrap.rank();
  const bool wanted = std::any_of(hosts.locations().begin(), hosts.locations().end(),
                                  [](const Location& location) { return location.wants_topology != 0; });
  if (!wanted) return hosts;
  const std::string view = first_ranks[self] == self ? packed_view(gpu_of(hosts.location(self))) : std::string();
  std::vector<TopologyDigest> digests(bootstrap.ranks());
  if (!view.empty()) digests[self] = digest_of(view);
  TUTTI_CHECK_OK(bootstrap.all_gather(std::as_writable_bytes(std::span(digests)), sizeof(TopologyDigest), watch));
  std::map<TopologyDigest, Topology> known;
  TopologyMerger merger;
  for (Rank rank = 0; rank < bootstrap.ranks(); ++rank) {
    if (first_ranks[rank] != rank) continue;
    const TopologyDigest& digest = digests[rank];
    const std::string name = hostname_of(bootstrap.peer(rank));
    if (digest.bytes > 0 && digest.bytes <= kMaxBroadcastBytes && !known.contains(digest)) {
      std::string reported = rank == self ? view : std::string(digest.bytes, '\0');
      TUTTI_CHECK_OK(bootstrap.broadcast(rank, std::as_writable_bytes(std::span(reported)), watch));
      known[digest] = TUTTI_TRY(unpacked(reported, "reading the topology of rank " + std::to_string(rank)));
    }
    merger.add(name, known[digest]);
  }
  auto merged = std::make_shared<const MergedTopology>(merger.take());
  if (self == 0) dump(*merged);
  hosts.set_topology(std::move(merged));
  return hosts;
}

}  // namespace tutti
