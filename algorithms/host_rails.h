// Rails of rooted collectives over hosts: shard s of the data is on rail s, which has one rank per host. The number of
// rails is the size of the smallest host.
#pragma once

#include "algorithms/host_map.h"

namespace tutti {

struct HostRails {
  explicit HostRails(const Problem& problem)
      : map(problem), root(problem.root), home(map.host_of(root)), count(map.smallest()) {}
  HostMap map;
  Rank root, home, count;  // `home`: the root's host.

  // Rank of a rail on a host. The root is on rail 0. A rail has the same position on hosts of the size of the root's.
  // On other hosts the rails are spread over the ranks.
  Rank rank(Rank rail, Rank host) const {
    const Rank size = map.size(host), first = map.first(host);
    const bool alike = size == map.size(home);
    return alike ? first + (root - map.first(home) + rail) % size : first + rail * (size / count);
  }
};

}  // namespace tutti
