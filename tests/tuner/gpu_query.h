// Calls of eight ranks on GPUs.
#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace tutti::test
