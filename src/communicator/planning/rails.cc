#include "src/communicator/planning/rails.h"

#include <algorithm>
#include <cstddef>

#include "algorithms/catalogue.h"

namespace tutti {
namespace {

constexpr std::size_t kFewHosts = 4;  // Up to so many, all hosts are partners.

// Returns the partners of each host.
std::vector<std::vector<Rank>> partners_of(std::size_t hosts) {
  constexpr Rank kRanksPerHost = 2;  // The partners do not depend on it.
  std::vector<std::vector<Rank>> partners(hosts);
  if (hosts <= kFewHosts) {
    for (Rank host = 0; host < hosts; ++host)
      for (Rank partner = 0; partner < hosts; ++partner)
        if (partner != host) partners[host].push_back(partner);
    return partners;
  }
  for (Rank host = 0; host < hosts; ++host) {  // Rings.
    partners[host].push_back(static_cast<Rank>((host + 1) % hosts));
    partners[host].push_back(static_cast<Rank>((host + hosts - 1) % hosts));
  }
  const Problem problem = {.collective = Collective::all_reduce,
                           .ranks = static_cast<Rank>(hosts) * kRanksPerHost,
                           .groups = {std::vector<Rank>(hosts, kRanksPerHost)}};
  for (const Plan& plan : emit_plans(*find(Collective::all_reduce, "host_tree"), problem)) {
    const Rank host = plan.steps.self() / kRanksPerHost;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& target : plan.steps[i].targets) {
        const Rank partner = target.peer / kRanksPerHost;
        if (target.is_memory() || partner == host) continue;
        partners[host].push_back(partner);
        partners[partner].push_back(host);
      }
    }
  }
  for (std::vector<Rank>& each : partners) {
    std::sort(each.begin(), each.end());
    each.erase(std::unique(each.begin(), each.end()), each.end());
  }
  return partners;
}

}  // namespace

Rails::Rails(const RankMapping& by_rails) {
  if (by_rails.groups.empty()) return;
  const std::vector<Rank>& hosts = by_rails.groups[0];
  const Rank size = hosts.front();
  const bool equal = std::all_of(hosts.begin(), hosts.end(), [=](Rank ranks) { return ranks == size; });
  if (!equal || size < 2 || hosts.size() < 2 || hosts.size() > kMaxHostsOnRails) return;
  ranks_per_host_ = size;
  positions_.resize(hosts.size() * size);
  for (Rank position = 0; position < positions_.size(); ++position)
    positions_[by_rails.order.empty() ? position : by_rails.order[position]] = position;
  partners_ = partners_of(hosts.size());
  const auto rest = static_cast<Rank>(hosts.size() - 1);
  for (const std::vector<Rank>& each : partners_) {
    max_partners_ = std::max(max_partners_, static_cast<Rank>(each.size()));
    max_others_ = std::max(max_others_, rest - static_cast<Rank>(each.size()));
  }
}

RemotePeers Rails::between(Rank one, Rank other) const {
  if (positions_.empty() || positions_[one] % ranks_per_host_ != positions_[other] % ranks_per_host_)
    return RemotePeers::all;
  const std::vector<Rank>& partners = partners_[host_of(one)];
  const bool partner = std::binary_search(partners.begin(), partners.end(), host_of(other));
  return partner ? RemotePeers::partners : RemotePeers::rail;
}

RemotePeers Rails::peers_of(std::span<const Plan> plans, const RankMapping& mapping) const {
  if (positions_.empty()) return RemotePeers::all;
  RemotePeers peers = RemotePeers::partners;
  const auto rank_at = [&](Rank logical) { return mapping.order.empty() ? logical : mapping.order[logical]; };
  for (const Plan& plan : plans) {
    const Rank self = rank_at(plan.steps.self());
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const Step step = plan.steps[i];
      for (const Operand& target : step.targets) {
        if (target.is_memory()) continue;
        const Rank peer = rank_at(target.peer);
        if (host_of(self) == host_of(peer)) continue;
        const RemotePeers needed = between(self, peer);
        const bool has_lane = needed != RemotePeers::rail || target.tag < kRailTags;
        peers = std::min(peers, has_lane ? needed : RemotePeers::all);
      }
    }
  }
  return peers;
}

}  // namespace tutti
