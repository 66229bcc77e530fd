// Ranks as threads of the test's process.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "src/communicator/communicator.h"
#include "tests/communicator/communicators.h"

namespace tutti::test {

// Returns a problem of each collective. The rank in the middle is the root.
inline std::vector<Problem> problems_of(Rank ranks) {
  std::vector<Problem> problems;
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    Problem problem;
    problem.collective = static_cast<Collective>(c);
    problem.ranks = ranks;
    problem.root = has_root(problem.collective) ? ranks / 2 : 0;
    problems.push_back(problem);
  }
  return problems;
}

inline Communicators make_ranks(Rank ranks, CommunicatorOptions options = {}) {
  options.timeout_ms = 60'000;  // A hang becomes a failure with a message.
  auto made = Communicator::create_all(ranks, options);
  TUTTI_ASSERT(made.ok());
  return std::move(made).value();
}

// Runs `body` on all ranks concurrently and returns the statuses by rank.
inline std::vector<Status> on_all(Communicators& ranks, const std::function<Status(Communicator&)>& body) {
  std::vector<Status> statuses(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = body(*ranks[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace tutti::test
