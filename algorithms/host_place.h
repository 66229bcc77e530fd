// Place of a rank on its host, for algorithms for several hosts of equal sizes.
#pragma once

#include <vector>

#include "algorithms/host_map.h"

namespace tutti {

struct HostPlace {
  HostPlace(const Problem& problem, Rank self)
      : map(problem),
        host(map.host_of(self)),
        position(self - map.first(host)),
        hosts(map.hosts()),
        size(map.smallest()) {
    for (Rank i = 1; i < size; ++i) flags.push_back(flag(map.first(host) + (position + i) % size));
  }

  HostMap map;
  Rank host, position, hosts, size;  // `position`: on the host. `size`: of each host.
  std::vector<Operand> flags;        // One per other rank of the host, in ring order from the next one on.

  // Rank at this position on a host.
  Rank rank_on(Rank other) const { return map.first(other) + position; }
  // The same on the i-th host after and before this one, in ring order.
  Rank after(Rank i) const { return rank_on((host + i) % hosts); }
  Rank before(Rank i) const { return rank_on((host + hosts - i) % hosts); }
};

// Base of algorithms for hosts of equal sizes. Most use switches, which add uncompressed numbers.
class EntryOverEqualHosts : public EntryOverHosts {
 public:
  using EntryOverHosts::EntryOverHosts;
  bool supports(const Problem& problem) const override {
    return EntryOverHosts::supports(problem) && HostMap(problem).even();
  }
  bool supports_compression(const Problem&) const override { return false; }
};

}  // namespace tutti
