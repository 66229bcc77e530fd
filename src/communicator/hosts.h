// Which ranks of a communicator share a host.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "src/base/rank.h"

namespace tutti {

class Hosts {
 public:
  Hosts() = default;
  // [rank]: a number that only ranks of its host have.
  explicit Hosts(std::span<const Rank> host_of) {
    std::map<Rank, Rank> first;
    for (const Rank host : host_of)
      leaders_.push_back(first.try_emplace(host, static_cast<Rank>(leaders_.size())).first->second);
  }
  static Hosts together(Rank ranks) { return Hosts(std::vector<Rank>(ranks, 0)); }
  static Hosts apart(Rank ranks) {
    std::vector<Rank> host_of(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) host_of[rank] = rank;
    return Hosts(host_of);
  }

  Rank ranks() const { return static_cast<Rank>(leaders_.size()); }
  // The lowest rank of its host.
  Rank leader_of(Rank rank) const { return leaders_[rank]; }
  const std::vector<Rank>& leaders() const { return leaders_; }
  bool share(Rank a, Rank b) const { return leaders_[a] == leaders_[b]; }
  // Of a communicator that these ranks make, in this order.
  Hosts of(const std::vector<Rank>& members) const {
    std::vector<Rank> host_of;
    for (const Rank member : members) host_of.push_back(leaders_[member]);
    return Hosts(host_of);
  }

 private:
  std::vector<Rank> leaders_;
};

}  // namespace tutti
