// Ranks as threads of the test's process that connect like ranks of different processes: they join with a unique id,
// and do not exchange pointers.
#pragma once

#include "tests/bootstrap/shared_unique_id.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {

inline Communicators meet(Rank ranks, const CommunicatorOptions& options = {}) {
  const auto id = make_unique_id(here());
  TUTTI_ASSERT(id.ok());
  Communicators met(ranks);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto made = Communicator::create(id.value(), rank, ranks, options);
      TUTTI_ASSERT(made.ok());
      met[rank] = std::move(made).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return met;
}

}  // namespace tutti::test
