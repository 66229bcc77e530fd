// Ranks in separate processes: created with an id or from a launcher's variables, and killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/api/processes.h"

namespace tutti::test {
namespace {

// Creates a rank alone from the environment. Returns 1 unless creation fails with the expected message.
int fails_to_join(const char* rank, const char* expected) {
  ::setenv("TUTTI_RANK", rank, 1);
  ::setenv("TUTTI_RANKS", "2", 1);
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.init_timeout_ms = 50;
  tutti_comm comm = nullptr;
  if (tutti_comm_create_from_environment(&options, &comm) != tutti_timeout) return 1;
  if (last_error().find(expected) != std::string::npos) return 0;
  ::fprintf(stderr, "%s\n", last_error().c_str());
  return 1;
}

// Elements that differ in every place: rank `from`, block `block`.
std::vector<std::int32_t> block_of(int from, int block, std::size_t count) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int32_t>(i * 7) + from * 1'000'003 + block * 17;
  return values;
}

std::vector<std::int32_t> joined(int blocks, const std::function<std::vector<std::int32_t>(int)>& block) {
  std::vector<std::int32_t> all;
  for (int b = 0; b < blocks; ++b) {
    const std::vector<std::int32_t> one = block(b);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// All collectives that only copy, out of place and in place, between private buffers.
bool exchanges(tutti_comm comm, int rank, int ranks, std::size_t count) {
  const auto mine = block_of(rank, 0, count);
  const auto gathered = joined(ranks, [&](int from) { return block_of(from, 0, count); });
  std::vector<std::int32_t> all(gathered.size());
  bool ok = tutti_all_gather(mine.data(), all.data(), count, tutti_int32, comm, nullptr) == tutti_ok && all == gathered;
  std::fill(all.begin(), all.end(), -1);
  std::int32_t* own = all.data() + static_cast<std::size_t>(rank) * count;
  std::copy(mine.begin(), mine.end(), own);
  ok = ok && tutti_all_gather(own, all.data(), count, tutti_int32, comm, nullptr) == tutti_ok && all == gathered;

  const auto sent = joined(ranks, [&](int to) { return block_of(rank, to, count); });
  ok = ok && tutti_all_to_all(sent.data(), all.data(), count, tutti_int32, comm, nullptr) == tutti_ok &&
       all == joined(ranks, [&](int from) { return block_of(from, rank, count); });

  for (int root = 0; root < ranks; ++root) {
    std::vector<std::int32_t> output(count, -1);
    const auto expected = block_of(root, 0, count);
    ok = ok && tutti_broadcast(mine.data(), output.data(), count, tutti_int32, root, comm, nullptr) == tutti_ok &&
         output == expected;
    output = mine;
    ok = ok && tutti_broadcast(output.data(), output.data(), count, tutti_int32, root, comm, nullptr) == tutti_ok &&
         output == expected;
  }
  if (!ok) ::fprintf(stderr, "rank %d, %zu elements: %s\n", rank, count, last_error().c_str());
  return ok;
}

TEST(MultiProcess, CreationSuggestsRoot_WhenRanksDoNotMeet) {
  for (const char* rank : {"0", "1"}) {
    EXPECT_EQ(run_processes(1, [&](int) { return fails_to_join(rank, "set TUTTI_ROOT to host:port"); }).front(), 0);
  }
}

TEST(MultiProcess, CopiesLargePrivateBuffers) {
  for (const int ranks : {2, 3}) {
    const Pipe pipe;
    const auto statuses = run_processes(ranks, [&](int rank) {
      const tutti_comm comm = create(rank, ranks, pipe);
      if (comm == nullptr) return 1;
      for (const std::size_t count : {300'001UL, 1'000UL, 300'001UL, 1UL << 20}) {
        if (!exchanges(comm, rank, ranks, count)) return 2;
      }
      return tutti_comm_destroy(comm) == tutti_ok ? 0 : 3;
    });
    EXPECT_EQ(statuses, std::vector<int>(static_cast<std::size_t>(ranks), 0));
  }
}

TEST(MultiProcess, CreatesRanks_FromUniqueId) {
  const Pipe pipe;
  const auto statuses = run_processes(4, [&](int rank) {
    const tutti_comm comm = create(rank, 4, pipe);
    return comm != nullptr && sums_to(comm, rank, 6) && tutti_comm_destroy(comm) == tutti_ok ? 0 : 1;
  });
  EXPECT_EQ(statuses, std::vector<int>(4, 0));
}

TEST(MultiProcess, CreatesRanks_FromLauncherVariables) {
  const std::string job = "tutti-test-" + std::to_string(::getpid());
  const auto statuses = run_processes(3, [&](int rank) {
    ::setenv("PMIX_NAMESPACE", job.c_str(), 1);
    ::setenv("OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
    tutti_comm comm = nullptr;
    const char* launcher = "";
    if (tutti_comm_create_from_environment(nullptr, &comm) != tutti_ok) ::fprintf(stderr, "%s\n", last_error().c_str());
    if (tutti_comm_launcher(comm, &launcher) != tutti_ok) return 1;
    const bool named = std::string(launcher).find("Open MPI") != std::string::npos;
    return named && sums_to(comm, rank, 3) && tutti_comm_destroy(comm) == tutti_ok ? 0 : 1;
  });
  EXPECT_EQ(statuses, std::vector<int>(3, 0));
}

TEST(MultiProcess, NamesRankThatDied) {
  const Pipe pipe;
  const auto statuses = run_processes(3, [&](int rank) {
    const tutti_comm comm = create(rank, 3, pipe);
    if (comm == nullptr) return 1;
    const bool summed = sums_to(comm, 1, 3);
    if (rank == 1) ::kill(::getpid(), SIGKILL);
    std::int32_t value = 1;
    // Rank 1's last messages may be lost with it if a device was still transmitting them.
    const tutti_status status =
        summed ? tutti_all_reduce(&value, &value, 1, tutti_int32, tutti_sum, comm, nullptr) : tutti_remote_error;
    const bool named = last_error().find("rank 1") != std::string::npos;
    if (!named) ::fprintf(stderr, "%s\n", last_error().c_str());
    return status == tutti_remote_error && named && tutti_comm_destroy(comm) == tutti_ok ? 0 : 1;
  });
  EXPECT_TRUE(WIFSIGNALED(statuses[1]));
  EXPECT_EQ(statuses[0], 0);
  EXPECT_EQ(statuses[2], 0);
}

TEST(Split, FailsAtOnce_WhenPeerRunsOutOfDescriptors) {
  const Pipe pipe;
  const auto statuses = run_processes(2, [&](int rank) {
    const tutti_comm comm = create(rank, 2, pipe);
    tutti_comm part = nullptr;
    if (comm == nullptr || tutti_comm_split(comm, 0, 0, nullptr, &part) != tutti_ok) return 1;
    const rlimit no_more_files = {3, 3};
    if (rank == 0 && ::setrlimit(RLIMIT_NOFILE, &no_more_files) != 0) return 2;
    const tutti_status status = tutti_comm_split(comm, 0, 0, nullptr, &part);
    ::fprintf(stderr, "rank %d: %s\n", rank, last_error().c_str());
    return status == tutti_system_error ? 0 : 3;
  });
  EXPECT_EQ(statuses, std::vector<int>(2, 0));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kNeedsAddresses = true;  // The sanitizer itself needs more address space than any limit.
#else
constexpr bool kNeedsAddresses = false;
#endif

// Runs in a process whose address space is exhausted, so that thread creation fails.
TEST(Stream, ReportsReason_WhenThreadCreationFails) {
  if (kNeedsAddresses) GTEST_SKIP() << "the sanitizer does not live with a limit of address space";
  const auto statuses = run_processes(1, [](int) {
    const rlimit no_more_memory = {0, 0};
    sigset_t blocked;
    tutti_stream stream = nullptr;
    if (::setrlimit(RLIMIT_AS, &no_more_memory) != 0) return 1;
    if (tutti_stream_create(&stream) != tutti_system_error || stream != nullptr) return 2;
    if (last_error().find("start a thread") == std::string::npos) return 3;
    if (::pthread_sigmask(SIG_SETMASK, nullptr, &blocked) != 0) return 4;
    return ::sigismember(&blocked, SIGTERM) == 0 ? 0 : 5;
  });
  EXPECT_EQ(statuses[0], 0);
}

TEST(MultiProcess, ReadsPeerMemoryInPlace) {
  const Pipe pipe;
  const auto statuses = run_processes(2, [&](int rank) {
    const tutti_comm comm = create(rank, 2, pipe);
    constexpr std::size_t count = 1 << 20;
    void* memory = nullptr;
    if (comm == nullptr || tutti_mem_alloc(&memory, count * sizeof(float)) != tutti_ok) return 1;
    auto* values = static_cast<float*>(memory);
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>(i % 1000 * static_cast<std::size_t>(rank + 1 + round));
      if (tutti_all_reduce(values, values, count, tutti_float32, tutti_sum, comm, nullptr) != tutti_ok) return 2;
      for (std::size_t i = 0; i < count; ++i) {
        if (values[i] != static_cast<float>(i % 1000 * static_cast<std::size_t>(3 + 2 * round))) return 3;
      }
    }
    return tutti_comm_destroy(comm) == tutti_ok && tutti_mem_free(memory) == tutti_ok ? 0 : 4;
  });
  EXPECT_EQ(statuses, std::vector<int>(2, 0));
}

// Mappings of memory from tutti_mem_alloc() of this rank and its peers.
int regions_mapped() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("tutti-memory") != std::string::npos ? 1 : 0;
  return count;
}

TEST(MultiProcess, UnmapsMemoryThatPeerFreed) {
  const Pipe pipe;
  const auto statuses = run_processes(3, [&](int rank) {
    const tutti_comm comm = create(rank, 3, pipe);
    constexpr std::size_t count = 1 << 18;
    const auto all_reduce = [&](float* values) {
      return tutti_all_reduce(values, values, count, tutti_float32, tutti_sum, comm, nullptr) == tutti_ok;
    };
    for (int round = 0; round < 50; ++round) {
      void* memory = nullptr;
      if (comm == nullptr || tutti_mem_alloc(&memory, count * sizeof(float)) != tutti_ok) return 1;
      static_cast<float*>(memory)[count - 1] = 2;
      if (!all_reduce(static_cast<float*>(memory)) || static_cast<float*>(memory)[count - 1] != 6) return 2;
      if (round == 0 && regions_mapped() != 3) return 3;  // The call read the memory in place.
      if (regions_mapped() > 5) return 4;  // Memory of this round, or of peers that have not yet begun it.
      if (tutti_mem_free(memory) != tutti_ok) return 5;
    }
    std::vector<float> ordinary(count);  // A call that does not use the last buffers unmaps them.
    if (!all_reduce(ordinary.data()) || !all_reduce(ordinary.data()) || regions_mapped() != 0) return 6;
    return tutti_comm_destroy(comm) == tutti_ok ? 0 : 7;
  });
  EXPECT_EQ(statuses, std::vector<int>(3, 0));
}

// Rank 1 waits for the unique id of rank 0, and rank 0 for rank 1 to join: neither peer ever starts. Runs in a
// child that has not called the library before, because the library reads the environment only once.
int aborts_creation_from_environment(const char* rank) {
  ::setenv("TUTTI_RANK", rank, 1);
  ::setenv("TUTTI_RANKS", "2", 1);
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.init_timeout_ms = 20'000;
  tutti_comm comm = nullptr;
  std::atomic<bool> returned{false};
  tutti_status status = tutti_ok;
  std::thread creating([&] {
    status = tutti_comm_create_from_environment(&options, &comm);
    if (status != tutti_aborted) ::fprintf(stderr, "%s\n", last_error().c_str());
    returned = true;
  });
  tutti_comm early = nullptr;
  while (early == nullptr && !returned) early = __atomic_load_n(&comm, __ATOMIC_ACQUIRE);
  int own_rank = -1, ranks = 0;
  const bool known = tutti_comm_rank(early, &own_rank) == tutti_ok && tutti_comm_ranks(early, &ranks) == tutti_ok &&
                     own_rank == std::atoi(rank) && ranks == 2;
  const bool aborted = tutti_comm_abort(early) == tutti_ok;
  creating.join();
  if (!known || !aborted) return 1;
  return status == tutti_aborted && comm == nullptr ? 0 : 2;
}

TEST(CreationFromEnvironment, ReturnsAborted_WhenAnotherThreadAborts) {
  for (const char* rank : {"0", "1"}) {
    const auto statuses = run_processes(1, [&](int) { return aborts_creation_from_environment(rank); });
    EXPECT_EQ(statuses.front(), 0) << "rank " << rank;
  }
}

TEST(Creation, CanBeAborted_ByAnotherThread) {
  tutti_unique_id id = {};
  TUTTI_EXPECT_OK(tutti_get_unique_id(&id));
  tutti_comm comm = nullptr;
  std::thread creating([&] {  // Rank 1 never joins.
    EXPECT_EQ(tutti_comm_create(&id, 0, 2, nullptr, &comm), tutti_aborted) << last_error();
    EXPECT_EQ(comm, nullptr);
  });
  tutti_comm early = nullptr;
  while (early == nullptr) early = __atomic_load_n(&comm, __ATOMIC_ACQUIRE);
  tutti_status error = tutti_ok;
  float value = 1;
  EXPECT_EQ(tutti_comm_async_error(early, &error), tutti_ok);
  EXPECT_EQ(error, tutti_in_progress);
  EXPECT_EQ(tutti_all_reduce(&value, &value, 1, tutti_float32, tutti_sum, early, nullptr), tutti_invalid_usage);
  EXPECT_EQ(tutti_comm_destroy(early), tutti_invalid_usage);
  EXPECT_EQ(tutti_comm_abort(early), tutti_ok);
  creating.join();
  EXPECT_EQ(tutti_comm_abort(early), tutti_invalid_argument);
}

// A program may end at its first error.
TEST(MultiProcess, ReportsRejectedCall_OfRankThatDies) {
  for (const char* transport : {"shm", "tcp"}) {
    const Pipe pipe;
    const auto statuses = run_processes(2, [&](int rank) {
      const tutti_comm comm = create(rank, 2, pipe, transport);
      std::int32_t value = 1;
      const tutti_status status =
          tutti_all_reduce(&value, rank == 1 ? nullptr : &value, 1, tutti_int32, tutti_sum, comm, nullptr);
      if (rank == 1) return status == tutti_invalid_argument ? 0 : 1;
      const std::string text = last_error();
      if (text.find("rank 1 died") != std::string::npos &&
          text.find(
              "; a call of rank 1 was rejected: tutti_all_reduce #1: recv is null but count is 1: pass a buffer") !=
              std::string::npos)
        return 0;
      ::fprintf(stderr, "%s\n", text.c_str());
      return 1;
    });
    for (const int status : statuses) EXPECT_EQ(status, 0) << transport;
  }
}

// With TCP, ranks announce only some calls to each other.
TEST(MultiProcess, ForgetsRejectedCall_AfterNextCall) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const bool in_group : {false, true}) {
      const Pipe pipe;
      const auto statuses = run_processes(2, [&](int rank) {
        const tutti_comm comm = create(rank, 2, pipe, transport);
        std::int32_t value = 1;
        const auto reduce = [&](std::int32_t* recv) {
          return tutti_all_reduce(&value, recv, 1, tutti_int32, tutti_sum, comm, nullptr);
        };
        if (rank == 1 && reduce(nullptr) != tutti_invalid_argument) return 1;
        if (in_group) tutti_group_start();
        tutti_status status = reduce(&value);
        if (in_group) status = tutti_group_end();
        if (status != tutti_ok) return 2;
        if (rank == 1) return 0;  // Ends without a second call.
        if (reduce(&value) == tutti_ok) return 3;
        const std::string text = last_error();
        if (text.find("rank 1 died") != std::string::npos && text.find("rejected") == std::string::npos) return 0;
        ::fprintf(stderr, "%s\n", text.c_str());
        return 4;
      });
      for (const int status : statuses) EXPECT_EQ(status, 0) << transport << ", in a group: " << in_group;
    }
  }
}

TEST(MultiProcess, NamesVariable_WhenOneRankIsDeterministic) {
  const Pipe pipe;
  const auto statuses = run_processes(2, [&](int rank) {
    ::setenv("TUTTI_DETERMINISTIC", rank == 0 ? "1" : "0", 1);
    const tutti_comm comm = create(rank, 2, pipe);
    float value = 1;
    const tutti_status status = tutti_all_reduce(&value, &value, 1, tutti_float32, tutti_sum, comm, nullptr);
    const std::string reported = last_error();
    const bool named = reported.find("TUTTI_DETERMINISTIC") != std::string::npos;
    if (status != tutti_invalid_usage || !named) ::fprintf(stderr, "%d: %s\n", status, reported.c_str());
    (void)tutti_comm_destroy(comm);
    return status == tutti_invalid_usage && named ? 0 : 1;
  });
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti::test
