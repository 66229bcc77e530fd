// Pairs of ranks between which hierarchical plans send data over the network. They have more memory for lanes than
// other pairs.
#pragma once

#include <span>
#include <vector>

#include "src/plan/rank_mapping.h"
#include "src/tuner/choose.h"

namespace tutti {

inline constexpr std::size_t kMaxHostsOnRails = 512;  // With more, plans of all hosts take long to emit.

// Maximum lanes from one rank to another on its rail that a plan has on each channel, unless they are partners.
inline constexpr std::uint16_t kRailTags = 1;

// Ranks with the same position on their hosts are on one rail. If there are few hosts, all ranks of a rail are
// partners, otherwise those of neighbours in a ring, and in the two trees of all-reduces.
// Equal on all ranks.
class Rails {
 public:
  Rails() = default;  // No pairs.
  // `by_rails`: see rail_rank_mapping(). No pairs if it has no groups, or if hosts have different numbers of ranks.
  explicit Rails(const RankMapping& by_rails);

  // For two ranks of different hosts.
  RemotePeers between(Rank one, Rank other) const;
  // Maximum numbers of partners of a rank, and of other ranks on its rail.
  Rank partners() const { return max_partners_; }
  Rank others() const { return max_others_; }
  // Returns the peers on other hosts that plans of logical ranks need. `mapping` orders by hosts.
  RemotePeers peers_of(std::span<const Plan> plans, const RankMapping& mapping) const;

 private:
  Rank host_of(Rank rank) const { return positions_[rank] / ranks_per_host_; }

  std::vector<Rank> positions_;  // By rank: its position in the mapping. Empty: no pairs.
  Rank ranks_per_host_ = 0, max_partners_ = 0, max_others_ = 0;
  std::vector<std::vector<Rank>> partners_;  // By host: hosts of its ranks' partners, sorted.
};

}  // namespace tutti
