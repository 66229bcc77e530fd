// Routes from a rank to its peers: which devices access each other's memory, and where the lanes are.
#include <string>
#include <utility>

#include "src/base/config.h"
#include "src/base/log.h"
#include "src/communicator/peers/gather.h"
#include "src/communicator/peers/peer_info.h"

namespace tutti {
namespace {

P2pLevel farthest_p2p() { return config().p2p_disabled ? P2pLevel::loc : config().p2p_level; }

}  // namespace

// Determines placements. No exchange is needed if all ranks are on one device of one process.
Status PeerSet::find_routes(const std::vector<Communicator*>& members, Set& set, const std::vector<PeerInfos>& all) {
  std::vector<Routes> own;
  for (std::size_t i = 0; i < set.size(); ++i) {
    auto routes = set[i].try_routes(all[i]);
    if (!routes.ok()) return members[i]->fail(std::move(routes).status());
    own.push_back(std::move(routes).value());
  }
  const Rank ranks = set.front().ranks();
  std::vector<Routes> tables(set.size(), Routes(std::size_t{ranks} * ranks));
  if (!set.front().one_device_) tables = TUTTI_TRY(gather(members, own));
  for (std::size_t i = 0; i < set.size(); ++i) {
    Status possible = set[i].check_routes(tables[i], all[i]);
    if (!possible.ok()) return members[i]->fail(std::move(possible));
    set[i].files_.clear();
    set[i].apply_routes(tables[i]);
  }
  return {};
}

// Checks that the placements that other ranks report are possible.
Status PeerSet::check_routes(const Routes& table, const PeerInfos& infos) const {
  const std::size_t ranks = infos.size();
  for (std::size_t pair = 0; pair < table.size(); ++pair) {
    const auto writer = static_cast<Rank>(pair / ranks), reader = static_cast<Rank>(pair % ranks);
    const bool near = hosts_.same_host(writer, reader);
    const bool together = infos[writer].process == infos[reader].process;
    const LanePlacement placement = table[pair].placement;
    if (near ? (placement == LanePlacement::host && host_of_[writer] == host_of_[reader]) ||
                   placement == (together ? LanePlacement::same_process : LanePlacement::ipc)
             : placement == LanePlacement::network)
      continue;
    return invalid_usage("rank " + std::to_string(pair / ranks) + " reported an impossible path to rank " +
                         std::to_string(pair % ranks) + ": it uses another version of the library");
  }
  return {};
}

Result<PeerSet::Routes> PeerSet::try_routes(const PeerInfos& infos) {
  Routes routes(ranks());
  std::vector<std::string> how(ranks());
  for (Rank peer = 0; peer < ranks(); ++peer) {
    how[peer] = "another host";
    if (!in_same_domain(peer)) routes[peer] = {LanePlacement::network, 1};
    if (peer != self_ && in_same_domain(peer)) routes[peer] = TUTTI_TRY(try_route(infos[peer], peer, how[peer]));
  }
  if (logs(LogLevel::info) && ranks() > 1) {
    const LogDevice named(static_cast<int>(own_memory().device().traits().ordinal));
    log(LogLevel::info, "rank %u on %s, lanes %s", self_, own_memory().device().traits().name.c_str(),
        describe_routes(how, self_).c_str());
  }
  return routes;
}

// Opens the peer's memory. If this fails, the lanes are in host memory, or in an NVLink domain of several hosts the
// rank fails.
Result<PeerSet::Route> PeerSet::try_route(const PeerInfo& info, Rank peer, std::string& how) {
  Device& device = own_memory().device();
  const bool same = info.device == device.traits().identity;
  DeviceDistance distance = {.level = P2pLevel::loc, .known = true};
  if (!same && on_this_host(peer)) distance = device.distance_to(info.device);
  how = on_this_host(peer) ? describe(distance) : "NVLink domain";
  if (domain_has_hosts_ && !same) distance = {.level = P2pLevel::nvl, .links = distance.links, .known = true};
  if (!same && !p2p_wanted(distance, farthest_p2p())) {
    how = "host memory (" + how + ", is farther than TUTTI_P2P_LEVEL)";
    return Route{LanePlacement::host, 0};
  }
  const std::uint8_t whole = distance.known && distance.level <= P2pLevel::nvl ? 1 : 0;
  Status reached;
  if (info.is_here()) {
    reached = device.enable_peer_access(memory_of(peer).device());
    if (reached.ok()) return Route{LanePlacement::same_process, whole};
  } else {
    auto opened = device.open(info.exported, files_[peer]);
    if (opened.ok()) {
      opened_[peer] = opened.value();
      return Route{LanePlacement::ipc, whole};
    }
    reached = std::move(opened).status();
  }
  if (domain_has_hosts_)
    return std::move(reached).during("opening memory of rank " + std::to_string(peer) + " in its NVLink domain");
  how = "host memory (" + reached.message() + ")";
  return Route{LanePlacement::host, 0};
}

}  // namespace tutti
