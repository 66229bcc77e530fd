// Ranks as processes that join with a unique id.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "tests/api/ranks.h"
#include "tests/base/pipe.h"

namespace tutti::test {

// Forks a process per rank, which exits with the result of `body`. Returns the wait statuses.
inline std::vector<int> run_processes(int ranks, const std::function<int(int)>& body) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body(rank));
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    statuses.push_back(status);
  }
  return statuses;
}

// Creates the communicator of a rank. Rank 0 creates the id and sends it to the others. Returns null on failure.
inline tutti_comm create(int rank, int ranks, const Pipe& pipe, const char* transport = nullptr) {
  tutti_unique_id id = {};
  if (rank == 0 && tutti_get_unique_id(&id) != tutti_ok) return nullptr;
  for (int other = 1; rank == 0 && other < ranks; ++other) {
    if (::write(pipe.writing.get(), &id, sizeof id) != sizeof id) return nullptr;
  }
  if (rank != 0 && ::read(pipe.reading.get(), &id, sizeof id) != sizeof id) return nullptr;
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.timeout_ms = options.init_timeout_ms = 30'000;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.transport = transport;
  options.tuning = &tuning;
  tutti_comm comm = nullptr;
  if (tutti_comm_create(&id, rank, ranks, &options, &comm) != tutti_ok) ::fprintf(stderr, "%s\n", last_error().c_str());
  return comm;
}

inline bool sums_to(tutti_comm comm, std::int32_t mine, std::int32_t expected) {
  std::vector<std::int32_t> values(10'000, mine);
  const bool ok =
      tutti_all_reduce(values.data(), values.data(), values.size(), tutti_int32, tutti_sum, comm, nullptr) == tutti_ok;
  if (!ok) ::fprintf(stderr, "%s\n", last_error().c_str());
  return ok && values == std::vector<std::int32_t>(values.size(), expected);
}

}  // namespace tutti::test
