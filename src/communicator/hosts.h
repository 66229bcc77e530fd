// Which ranks of a communicator share a host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
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
  // The machine whose CPUs a rank shares with others; it may play several hosts.
  struct Seat {
    Rank machine = 0;        // A number that only ranks there have.
    std::uint32_t cpus = 0;  // Of all of it.
  };
  Hosts(std::span<const Rank> host_of, std::vector<Seat> seats) : Hosts(host_of) { seats_ = std::move(seats); }

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
    std::vector<Seat> seats;
    for (const Rank member : members) {
      host_of.push_back(leaders_[member]);
      if (!seats_.empty()) seats.push_back(seats_[member]);
    }
    return Hosts(host_of, std::move(seats));
  }
  // On the most crowded machine; 1 where each has a CPU, or nobody said.
  double ranks_per_cpu() const {
    std::map<Rank, std::uint32_t> ranks;
    double most = 1;
    for (const Seat& seat : seats_) most = std::max(most, static_cast<double>(++ranks[seat.machine]) / seat.cpus);
    return most;
  }
  // Whether there are no links between hosts, since one machine plays them all.
  bool one_machine() const {
    const auto is_first = [&](const Seat& seat) { return seat.machine == seats_[0].machine; };
    return !seats_.empty() && std::all_of(seats_.begin(), seats_.end(), is_first);
  }

 private:
  std::vector<Rank> leaders_;
  std::vector<Seat> seats_;  // Empty: nobody said.
};

}  // namespace tutti
