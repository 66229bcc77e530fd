// tutti_comm_shrink() after processes were killed, and with invalid arguments.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <numeric>

#include "tests/api/processes.h"

namespace tutti::test {
namespace {

bool is_in(const std::vector<int>& list, int rank) { return std::find(list.begin(), list.end(), rank) != list.end(); }

// Dies during an all-reduce.
void reduce_and_die(tutti_comm comm) {
  std::vector<std::int32_t> values(1 << 20, 1);
  std::thread killer([] { ::kill(::getpid(), SIGKILL); });
  for (;;) (void)tutti_all_reduce(values.data(), values.data(), values.size(), tutti_int32, tutti_sum, comm, nullptr);
}

// Repeats all-reduces until one fails.
tutti_status reduce_until_reported(tutti_comm comm) {
  std::vector<std::int32_t> values(1 << 20, 1);
  tutti_status status = tutti_ok;
  while (status == tutti_ok) {
    status = tutti_all_reduce(values.data(), values.data(), values.size(), tutti_int32, tutti_sum, comm, nullptr);
  }
  return status;
}

void expect_survivors_go_on(int ranks, const std::vector<int>& killed) {
  const Pipe pipe;
  int survivors = 0;
  for (int rank = 0; rank < ranks; ++rank) survivors += is_in(killed, rank) ? 0 : rank;
  const auto statuses = run_processes(ranks, [&](int rank) {
    const tutti_comm comm = create(rank, ranks, pipe);
    if (comm == nullptr) return 1;
    (void)sums_to(comm, 1, ranks);  // A killed rank may be dead before the others have completed the call.
    if (is_in(killed, rank)) reduce_and_die(comm);
    if (reduce_until_reported(comm) != tutti_remote_error) return 2;
    tutti_comm part = nullptr;
    const int count = static_cast<int>(killed.size());
    if (tutti_comm_shrink(comm, killed.data(), count, nullptr, &part) != tutti_ok) {
      ::fprintf(stderr, "rank %d: %s\n", rank, last_error().c_str());
      return 3;
    }
    if (tutti_comm_destroy(comm) != tutti_ok || !sums_to(part, rank, survivors)) return 4;
    return tutti_comm_destroy(part) == tutti_ok ? 0 : 5;
  });
  for (int rank = 0; rank < ranks; ++rank) {
    const int status = statuses[static_cast<std::size_t>(rank)];
    if (is_in(killed, rank)) {
      EXPECT_TRUE(WIFSIGNALED(status)) << rank;
    } else {
      EXPECT_EQ(status, 0) << rank;
    }
  }
}

TEST(Shrink, Succeeds_WhenRankDiedInAllReduce) {
  for (const int killed : {0, 1, 3}) expect_survivors_go_on(4, {killed});
}

TEST(Shrink, Succeeds_WhenTwoOfFiveRanksDied) {
  expect_survivors_go_on(5, {3, 1});
  expect_survivors_go_on(5, {0, 4});
}

TEST(Shrink, FailsOnAllRanks_WhenOneFails) {
  const Pipe pipe, reported;
  const auto statuses = run_processes(3, [&](int rank) {
    const tutti_comm comm = create(rank, 3, pipe);
    const int excluded = 2;
    tutti_comm part = nullptr;
    if (comm == nullptr) return 1;
    if (rank == 2) return tutti_comm_abort(comm) == tutti_ok ? 0 : 2;
    rlimit files = {};
    ::getrlimit(RLIMIT_NOFILE, &files);
    const rlimit no_more_files = {3, files.rlim_max};
    if (rank == 0 && ::setrlimit(RLIMIT_NOFILE, &no_more_files) != 0) return 3;
    pollfd answer = {reported.reading.get(), POLLIN, 0};
    do {  // Rank 0 fails repeatedly, until the other rank has called and received the error.
      if (tutti_comm_shrink(comm, &excluded, 1, nullptr, &part) != tutti_system_error || part != nullptr) return 4;
      if (last_error().find("rank 0 makes sockets") == std::string::npos) return 5;
    } while (rank == 0 && ::poll(&answer, 1, 0) == 0);
    if (rank == 1 && ::write(reported.writing.get(), "!", 1) != 1) return 8;
    ::setrlimit(RLIMIT_NOFILE, &files);
    tutti_status status = tutti_system_error;  // Rank 0 may have taken part in one more failure.
    while (status == tutti_system_error) status = tutti_comm_shrink(comm, &excluded, 1, nullptr, &part);
    if (status != tutti_ok || !sums_to(part, rank, 1)) return 6;
    return tutti_comm_destroy(part) == tutti_ok ? 0 : 7;
  });
  EXPECT_EQ(statuses, std::vector<int>(3, 0));
}

// The error is reported before any message is sent: no other rank takes part.
TEST(Shrink, RejectsInvalidLists) {
  const Ranks ranks(4);
  const auto expect = [&](const std::vector<int>& list, const std::string& words) {
    tutti_comm part = nullptr;
    EXPECT_EQ(tutti_comm_shrink(ranks[1], list.data(), static_cast<int>(list.size()), nullptr, &part),
              tutti_invalid_argument);
    EXPECT_NE(last_error().find(words), std::string::npos) << last_error();
    EXPECT_EQ(part, nullptr);
  };
  expect({0, 4}, "excluded[1] is 4, which is out of range; ranks are 0..3");
  expect({-1}, "excluded[0] is -1, which is out of range");
  expect({2, 3, 2}, "excluded[2] is 2, as one before it: pass each rank once");
  expect({3, 2, 1, 0}, "excluded has all 4 ranks");
  expect({3, 1}, "excluded has rank 1, which is this one");
  tutti_comm part = nullptr;
  const int list = 0;
  EXPECT_EQ(tutti_comm_shrink(ranks[1], &list, -1, nullptr, &part), tutti_invalid_argument);
  EXPECT_EQ(tutti_comm_shrink(ranks[1], nullptr, 1, nullptr, &part), tutti_invalid_argument);
  EXPECT_EQ(tutti_comm_shrink(ranks[1], &list, 1, nullptr, nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_comm_shrink(nullptr, &list, 1, nullptr, &part), tutti_invalid_argument);
  TUTTI_EXPECT_OK(tutti_group_start());
  EXPECT_EQ(tutti_comm_shrink(ranks[1], &list, 1, nullptr, &part), tutti_invalid_usage);
  TUTTI_EXPECT_OK(tutti_group_end());
}

TEST(Shrink, CanBeAborted_ByNewHandle) {
  const Ranks ranks(2);
  tutti_comm part = nullptr;
  std::thread shrinking([&] {  // Rank 1 does not call.
    EXPECT_EQ(tutti_comm_shrink(ranks[0], nullptr, 0, nullptr, &part), tutti_aborted) << last_error();
  });
  tutti_comm early = nullptr;
  while (early == nullptr) early = __atomic_load_n(&part, __ATOMIC_ACQUIRE);
  int count = 0;
  EXPECT_EQ(tutti_comm_ranks(early, &count), tutti_ok);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(tutti_comm_abort(early), tutti_ok);
  shrinking.join();
  EXPECT_EQ(part, nullptr);
  ranks.run([&](int, tutti_comm comm) {
    tutti_status error = tutti_aborted;
    EXPECT_EQ(tutti_comm_async_error(comm, &error), tutti_ok);
    EXPECT_EQ(error, tutti_ok);
  });
}

// A rank hangs in a call; the excluded ranks end by abort.
TEST(Shrink, WaitsForCallsInStreams) {
  const Ranks ranks(3);
  ranks.run([](int rank, tutti_comm comm) {
    if (rank == 2) return;
    tutti_stream stream = nullptr;
    TUTTI_EXPECT_OK(tutti_stream_create(&stream));
    std::vector<std::int32_t> values(100, 1);
    TUTTI_EXPECT_OK(tutti_all_reduce(values.data(), values.data(), 100, tutti_int32, tutti_sum, comm, stream));
    TUTTI_EXPECT_OK(tutti_comm_abort(comm));
    const int excluded = 2;
    tutti_comm part = nullptr;
    TUTTI_EXPECT_OK(tutti_comm_shrink(comm, &excluded, 1, nullptr, &part));
    EXPECT_EQ(tutti_stream_synchronize(stream), tutti_aborted);
    EXPECT_TRUE(sums_to(part, rank + 1, 3));
    TUTTI_EXPECT_OK(tutti_stream_destroy(stream));  // synchronize has reported the failure.
    TUTTI_EXPECT_OK(tutti_comm_destroy(part));
  });
}

}  // namespace
}  // namespace tutti::test
