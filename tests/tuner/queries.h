// Queries for tests of the tuner's choices.
#pragma once

#include <cstdint>

#include "algorithms/catalogue.h"
#include "src/tuner/choose.h"

namespace tutti::test {

// Returns the query of a call on host memory of one host, without mapped memory.
inline Query query(Collective collective, Rank ranks, std::uint64_t bytes) {
  Query query;
  query.problem.collective = collective;
  query.problem.ranks = ranks;
  query.block_bytes = bytes;
  query.catalogue = catalogue(collective);
  return query;
}

}  // namespace tutti::test
