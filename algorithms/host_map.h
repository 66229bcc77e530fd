// Assignment of ranks to hosts, for algorithms that distinguish links inside and between hosts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "algorithms/entry.h"

namespace tutti {

// True if the problem describes at least two hosts, none of them empty.
inline bool has_hosts(const Problem& problem) {
  if (problem.groups.empty() || problem.groups[0].size() < 2) return false;
  const std::vector<Rank>& sizes = problem.groups[0];
  return std::find(sizes.begin(), sizes.end(), 0U) == sizes.end() &&
         std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) == problem.ranks;
}

class HostMap {
 public:
  explicit HostMap(const Problem& problem) : sizes_(problem.groups[0]), firsts_(sizes_.size()) {
    std::exclusive_scan(sizes_.begin(), sizes_.end(), firsts_.begin(), Rank{0});
    const auto [min, max] = std::minmax_element(sizes_.begin(), sizes_.end());
    smallest_ = *min;
    even_ = *min == *max;
  }

  Rank hosts() const { return static_cast<Rank>(sizes_.size()); }
  Rank first(Rank host) const { return firsts_[host]; }
  Rank size(Rank host) const { return sizes_[host]; }
  Rank end(Rank host) const { return firsts_[host] + sizes_[host]; }
  Rank smallest() const { return smallest_; }
  // All hosts have equally many ranks.
  bool even() const { return even_; }
  Rank host_of(Rank rank) const {
    return static_cast<Rank>(std::upper_bound(firsts_.begin(), firsts_.end(), rank) - firsts_.begin() - 1);
  }
  // Rank of `host` that handles the block of `rank`: `rank` itself on its own host, otherwise the rank at the
  // proportional position.
  Rank agent(Rank rank, Rank host) const {
    const Rank home = host_of(rank);
    return firsts_[host] + static_cast<Rank>(std::uint64_t{rank - firsts_[home]} * sizes_[host] / sizes_[home]);
  }

 private:
  std::vector<Rank> sizes_, firsts_;
  Rank smallest_ = 0;
  bool even_ = true;
};

// Path of a block between hosts: from its owner's host to each other host, or around a ring of hosts.
enum class HostRoute : std::uint8_t { direct, ring };

// Base of algorithms for ranks of several hosts.
class EntryOverHosts : public Entry<Algorithm> {
 public:
  using Entry::Entry;
  bool supports(const Problem& problem) const override { return Entry::supports(problem) && has_hosts(problem); }
};

}  // namespace tutti
