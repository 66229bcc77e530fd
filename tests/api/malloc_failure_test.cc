// Calls of the API while malloc() fails: each returns a status, none ends the process. This program replaces malloc(),
// so it cannot be built with sanitizers.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "tutti/tutti.h"

extern "C" {
void* __libc_malloc(std::size_t bytes);                       // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t bytes);    // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t align, std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)
}

namespace tutti::test {
namespace {

constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;
std::atomic<std::int64_t> allocations_left{kUnlimited};

constexpr std::size_t kMaxBytes = std::size_t{1} << 40;  // Larger allocations fail.

bool fails(std::size_t bytes) {
  if (bytes <= kMaxBytes && allocations_left.fetch_sub(1, std::memory_order_relaxed) > 0) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace
}  // namespace tutti::test

extern "C" {
void* malloc(std::size_t bytes) { return tutti::test::fails(bytes) ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) {
  return tutti::test::fails(bytes) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  return tutti::test::fails(bytes) ? nullptr : __libc_realloc(memory, bytes);
}
void* memalign(std::size_t align, std::size_t bytes) {
  return tutti::test::fails(bytes) ? nullptr : __libc_memalign(align, bytes);
}
void* aligned_alloc(std::size_t align, std::size_t bytes) { return memalign(align, bytes); }
int posix_memalign(void** memory, std::size_t align, std::size_t bytes) {
  void* allocated = memalign(align, bytes);
  if (allocated == nullptr) return ENOMEM;
  *memory = allocated;
  return 0;
}
}

namespace tutti::test {
namespace {

constexpr int kRanks = 2;
constexpr unsigned kHangSeconds = 60;

// Exit codes of a child.
enum ChildResult { all_ok = 0, some_failed = 1, no_error_text = 2 };

class Statuses {
 public:
  // Returns whether the call succeeded.
  bool check(tutti_status status) {
    if (status == tutti_ok) return true;
    failed_ = true;
    const char* text = tutti_last_error(nullptr);
    if (text == nullptr || *text == '\0') no_text_ = true;
    return false;
  }
  ChildResult result() const { return no_text_ ? no_error_text : (failed_ ? some_failed : all_ok); }

 private:
  std::atomic<bool> failed_{false}, no_text_{false};
};

tutti_comm_options short_timeouts() {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.timeout_ms = options.init_timeout_ms = 2'000;
  return options;
}

void use_and_destroy(Statuses& statuses, tutti_comm comm) {
  std::array<float, 100> values = {};
  const auto all_reduce = [&](tutti_comm on, tutti_stream stream) {
    return tutti_all_reduce(values.data(), values.data(), values.size(), tutti_float32, tutti_sum, on, stream);
  };
  statuses.check(all_reduce(comm, nullptr));
  tutti_comm part = nullptr;
  if (statuses.check(tutti_comm_split(comm, 0, 0, nullptr, &part))) {
    statuses.check(all_reduce(part, nullptr));
    statuses.check(tutti_comm_destroy(part));
  }
  tutti_group_start();
  for (int i = 0; i < 2; ++i) statuses.check(all_reduce(comm, nullptr));
  statuses.check(tutti_group_end());
  tutti_stream stream = nullptr;
  if (statuses.check(tutti_stream_create(&stream))) {
    statuses.check(all_reduce(comm, stream));
    statuses.check(tutti_stream_destroy(stream));
  }
  statuses.check(tutti_comm_destroy(comm));
}

// Runs one thread per rank. The threads exist before malloc() begins to fail.
ChildResult run_ranks(std::int64_t allocations, const std::function<void(Statuses&, int)>& body) {
  Statuses statuses;
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::array<std::thread, kRanks> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads[static_cast<std::size_t>(rank)] = std::thread([&, rank] {
      ++ready;
      while (!go) std::this_thread::yield();
      body(statuses, rank);
    });
  }
  while (ready != kRanks) std::this_thread::yield();
  allocations_left = allocations;
  go = true;
  for (std::thread& thread : threads) thread.join();
  return statuses.result();
}

// All ranks are created by rank 0's thread.
ChildResult create_all(std::int64_t allocations) {
  std::array<tutti_comm, kRanks> comms = {};
  std::atomic<bool> created{false};
  return run_ranks(allocations, [&](Statuses& statuses, int rank) {
    if (rank == 0) {
      const tutti_comm_options options = short_timeouts();
      statuses.check(tutti_comm_create_all(kRanks, &options, comms.data()));
      created = true;
    }
    while (!created) std::this_thread::yield();
    const tutti_comm comm = comms[static_cast<std::size_t>(rank)];
    if (comm != nullptr) use_and_destroy(statuses, comm);
  });
}

// The ranks meet through a unique id, as ranks of different processes do.
ChildResult create_by_id(std::int64_t allocations) {
  tutti_unique_id id = {};
  std::atomic<int> id_state{0};  // 1: valid, 2: failed.
  return run_ranks(allocations, [&](Statuses& statuses, int rank) {
    if (rank == 0) id_state = statuses.check(tutti_get_unique_id(&id)) ? 1 : 2;
    while (id_state == 0) std::this_thread::yield();
    if (id_state == 2) return;
    const tutti_comm_options options = short_timeouts();
    tutti_comm comm = nullptr;
    if (statuses.check(tutti_comm_create(&id, rank, kRanks, &options, &comm))) use_and_destroy(statuses, comm);
  });
}

using Scenario = ChildResult (*)(std::int64_t allocations);

int status_of_child(Scenario scenario, std::int64_t allocations) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kHangSeconds);
    ::_exit(scenario(allocations));
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

class MallocFailure : public ::testing::TestWithParam<Scenario> {};

// Tries the first allocations one by one, and then a random part of the others.
TEST_P(MallocFailure, ReturnsErrors_WhenItLasts) {
  const std::uint32_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::minstd_rand random(seed);
  std::int64_t allocations = 0;
  for (int result = some_failed; result != all_ok; allocations += allocations < 50 ? 1 : 1 + random() % 40) {
    const int status = status_of_child(GetParam(), allocations);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << " after " << allocations << " allocations";
    result = WEXITSTATUS(status);
    ASSERT_TRUE(result == all_ok || result == some_failed) << result << " after " << allocations << " allocations";
  }
  EXPECT_GT(allocations, 500);
}

INSTANTIATE_TEST_SUITE_P(All, MallocFailure, ::testing::Values(create_all, create_by_id));

// The calls that follow report the failed one.
TEST(LargeCount, IsNamed_WhenMemoryIsLacking) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.name = "gradients";
  tutti_comm comm = nullptr;
  ASSERT_EQ(tutti_comm_create_all(1, &options, &comm), tutti_ok);
  std::array<float, 4> in = {}, out = {};
  for (const std::size_t count : {std::size_t{1} << 40, in.size()}) {
    EXPECT_EQ(tutti_all_reduce(in.data(), out.data(), count, tutti_float32, tutti_sum, comm, nullptr),
              tutti_system_error);
    EXPECT_STREQ(tutti_last_error(nullptr),
                 "tutti_all_reduce: out of memory in all_reduce(1099511627776 float32, sum) #1 on gradients: check the "
                 "count");
  }
  EXPECT_EQ(tutti_comm_destroy(comm), tutti_ok);
}

}  // namespace
}  // namespace tutti::test
