// Calls used by the tests of choices.
#pragma once

#include <cstdint>

#include "algorithms/catalogue.h"
#include "src/tuner/choose.h"

namespace tutti::test {

// On host memory of one machine, through lanes.
inline Query query(Collective collective, Rank ranks, std::uint64_t bytes) {
  Query query;
  query.problem.collective = collective;
  query.problem.ranks = ranks;
  query.block_bytes = bytes;
  query.catalogue = catalogue(collective);
  return query;
}

}  // namespace tutti::test
