// Ranks of which only some have a tuner plugin, or name one that cannot be opened.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/api/processes.h"
#include "tests/tuner/plugin/stand_in.h"

namespace tutti::test {
namespace {

// Runs in a child of this process, before the library reads its environment.
void use_ring_of_plugin(const char* file) {
  ::setenv("NCCL_TUNER_PLUGIN", file, 1);
  stand_in_of(STAND_IN_V4).answer = [](const AskedCall&, nccl_tuner::Table& table, std::int32_t&) {
    table[1][2] = 0;
    return 0;
  };
}

std::string last_algorithm(tutti_comm comm) {
  const char *algorithm = nullptr, *protocol = nullptr;
  if (tutti_comm_last_choice(comm, &algorithm, &protocol) != tutti_ok) return last_error();
  return algorithm;
}

TEST(TunerPlugin, IsUsed_WhenAllRanksHaveIt) {
  const Pipe pipe;
  const auto statuses = run_processes(3, [&](int rank) {
    use_ring_of_plugin(STAND_IN_V4);
    const tutti_comm comm = create(rank, 3, pipe);
    const bool right = sums_to(comm, rank, 3) && last_algorithm(comm) == "ring";
    return right && tutti_comm_destroy(comm) == tutti_ok ? 0 : 1;
  });
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

TEST(TunerPlugin, FailsOnAllRanks_WhenOnlySomeHaveIt) {
  for (const int ranks : {2, 4}) {
    const Pipe pipe;
    const auto statuses = run_processes(ranks, [&](int rank) {
      if (rank == 1) use_ring_of_plugin(STAND_IN_V4);
      const tutti_comm comm = create(rank, ranks, pipe);
      std::vector<std::int32_t> values(10'000, rank);
      const tutti_status status =
          tutti_all_reduce(values.data(), values.data(), values.size(), tutti_int32, tutti_sum, comm, nullptr);
      const std::string reported = last_error();
      const bool named = reported.find("TUTTI_TUNER_PLUGIN") != std::string::npos;
      if (status != tutti_invalid_usage || !named) ::fprintf(stderr, "%d: %s\n", status, reported.c_str());
      (void)tutti_comm_destroy(comm);
      return status == tutti_invalid_usage && named ? 0 : 1;
    });
    for (const int status : statuses) EXPECT_EQ(status, 0);
  }
}

TEST(TunerPlugin, IsIgnored_WhenItCannotBeOpened) {
  const Pipe pipe;
  const auto statuses = run_processes(2, [&](int rank) {
    if (rank == 1) ::setenv("TUTTI_TUNER_PLUGIN", "none-of-this-name", 1);
    const tutti_comm comm = create(rank, 2, pipe);
    const bool right = sums_to(comm, rank, 1);
    return right && tutti_comm_destroy(comm) == tutti_ok ? 0 : 1;
  });
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti::test
