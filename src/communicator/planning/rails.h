// Pairs of ranks between which hierarchical plans send data over the network. They have more lanes than other pairs.
#pragma once

#include <span>
#include <vector>

#include "src/plan/rank_mapping.h"

namespace tutti {

// Ranks with the same position on their hosts are on one rail. If there are few hosts, rails connect all of them,
// otherwise neighbours in a ring, and hosts that exchange data in the hierarchical all-reduce. Equal on all ranks.
class Rails {
 public:
  Rails() = default;  // No pairs.
  // `by_rails`: see rail_rank_mapping(). No pairs if it has no groups, or if hosts have different numbers of ranks.
  explicit Rails(const RankMapping& by_rails);

  bool connect(Rank one, Rank other) const;
  // Maximum number of ranks to which a rank is connected.
  Rank peers() const { return peers_; }
  // Returns true if plans of logical ranks send data between hosts along rails only. `mapping` orders by hosts.
  bool carry(std::span<const Plan> plans, const RankMapping& mapping) const;

 private:
  Rank host_of(Rank rank) const { return positions_[rank] / ranks_per_host_; }

  std::vector<Rank> positions_;  // By rank: its position in the mapping. Empty: no pairs.
  Rank ranks_per_host_ = 0, peers_ = 0;
  std::vector<std::vector<Rank>> partners_;  // By host: hosts to which its ranks are connected, sorted.
};

}  // namespace tutti
