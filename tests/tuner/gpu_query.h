// Calls of eight ranks on GPUs.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/tuner/choose.h"

namespace tutti::test {

inline Query query_on(Collective collective, std::uint64_t block_bytes) {
  Query query;
  query.problem = {.collective = collective, .ranks = 8, .groups = {}};
  query.block_bytes = block_bytes;
  query.thread_blocks = 32;
  query.catalogue = catalogue(collective);
  return query;
}

inline std::string_view chosen(const Query& query) { return choose(query).value().algorithm; }

// A call on hosts of 8 GPUs.
inline Query query_on_hosts(Collective collective, std::uint64_t block_bytes, Rank hosts) {
  Query query = query_on(collective, block_bytes);
  query.network = true;
  query.problem.groups = {std::vector<Rank>(hosts, 8)};
  query.problem.ranks = 8 * hosts;
  query.lane_channels = 3;
  query.remote_channels = {.rail = 16, .partners = 24};
  return query;
}

// Adds LL lanes along rails, with the algorithms that use them.
inline void add_ll_lanes(Query& query, std::uint32_t channels) {
  query.remote_ll_channels = channels;
  for (const char* name : {"host_one_shot", "host_doubling", "hierarchical"})
    if (const Algorithm* found = find(query.problem.collective, name))
      query.on_rails.emplace_back(found, RemotePeers::rail);
}

inline std::pair<const Algorithm*, RemotePeers> partners(Collective collective, std::string_view algorithm) {
  return {find(collective, algorithm), RemotePeers::partners};
}

}  // namespace tutti::test
