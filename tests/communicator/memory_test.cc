// Ranks that run out of memory at any point of a call. Peers must receive an error, as for any failure.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>

#include "src/base/caught.h"
#include "src/communicator/control/regions.h"
#include "src/communicator/group.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"
#include "tests/communicator/refusal.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kStride = 7;  // Tries one of kStride allocations, of some hundred.

// Lets allocation number `which` of a call on rank 1 fail. Returns false if the call makes fewer allocations.
bool lacks_memory_in_a_call(std::uint64_t which) {
  Communicators ranks = make_ranks(2);
  bool came = false;
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    std::vector<float> buffer(128);
    Call call = all_reduce(buffer);
    call.collective = Collective::all_to_all;  // Needs memory: in place, the algorithm works on a copy.
    call.count = 64;
    if (communicator.rank() == 0) return communicator.run(call);
    const Refusal refusal(which);
    Status status = communicator.run(call);
    came = refusal.came();
    return status;
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), came ? Code::system : Code::ok) << which;
    EXPECT_EQ(status.message().starts_with("out of memory"), came) << which << ": " << status.message();
  }
  return came;
}

TEST(OutOfMemory, IsReportedToAllRanks_InCall) {
  std::uint64_t which = 1;
  while (lacks_memory_in_a_call(which)) which += kStride;
  EXPECT_GT(which, 10 * kStride);  // The call creates a plan, verifies it, and creates lanes.
}

// Like lacks_memory_in_a_call(), for a call that advances step by step.
bool lacks_memory_step_by_step(std::uint64_t which, Kind kind) {
  Communicators ranks = make_ranks(2);
  std::vector<std::vector<float>> sums(2, std::vector<float>(64));
  std::vector<std::vector<int>> messages(2, std::vector<int>(64));
  const auto call = [&](Rank rank) {
    if (kind == Kind::collective) return all_reduce(sums[rank]);
    return message(rank == 0 ? Kind::send : Kind::recv, 1 - rank, messages[rank]);
  };
  auto peer = ranks[0]->start(call(0));
  EXPECT_TRUE(peer.ok());
  std::optional<Refusal> refusal(which);
  const auto own = ranks[1]->start(call(1));
  bool came = refusal->came();
  for (bool done = false; own.ok() && !came && !done;) {
    const auto advanced = own.value()->advance();
    came = refusal->came();
    done = !advanced.ok() || advanced.value();
    if (!came) (void)peer.value()->advance();
  }
  refusal.reset();
  EXPECT_EQ(ranks[0]->failure().code(), came ? Code::system : Code::ok) << which;
  return came;
}

TEST(OutOfMemory, IsReportedToAllRanks_InOperation) {
  for (const Kind kind : {Kind::collective, Kind::recv}) {
    std::uint64_t which = 1;
    while (lacks_memory_step_by_step(which, kind)) ++which;
    EXPECT_GT(which, 10U);
  }
}

// One thread runs two calls on each of two communicators in a group. A thread of the peers does the same.
class Group {
 public:
  // Lets allocation number `which` of rank 1 fail. Expects that no peer waits for failed calls. Returns false if rank 1
  // makes fewer allocations.
  bool lacks_memory(std::uint64_t which) {
    bool came = false;
    Status peers;
    const std::vector<GroupedCall> calls = calls_of(1);
    std::thread others([&] { peers = run_group(calls_of(0)); });
    Status own;
    {
      const Refusal refusal(which);
      own = run_group(calls);
      came = refusal.came();
    }
    others.join();
    EXPECT_EQ(own.code(), came ? Code::system : Code::ok) << which << ": " << own.message();
    EXPECT_TRUE(peers.ok() || came) << which << ": " << peers.message();
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const Status failure = pairs_[pair][0]->failure();
      EXPECT_EQ(failure.ok(), pairs_[pair][1]->failure().ok()) << which;
      EXPECT_NE(failure.code(), Code::timeout) << which << ": " << failure.message();
      const bool summed = buffers_[pair][1][0] == 4;
      EXPECT_TRUE(summed || !failure.ok()) << which << ": the communicator is well, but its calls did not run";
    }
    return came;
  }

 private:
  std::vector<GroupedCall> calls_of(Rank rank) {
    std::vector<GroupedCall> calls;
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const Call call = all_reduce(buffers_[pair][rank]);
      for (int i = 0; i < 2; ++i) calls.push_back({pairs_[pair][rank].get(), call, {}});
    }
    return calls;
  }

  Communicators pairs_[2] = {make_ranks(2), make_ranks(2)};
  std::vector<float> buffers_[2][2] = {{std::vector<float>(64, 1), std::vector<float>(64, 1)},
                                       {std::vector<float>(64, 1), std::vector<float>(64, 1)}};
};

TEST(OutOfMemory, FailsOnlyAffectedCalls_InGroup) {
  std::uint64_t which = 1;
  while (Group().lacks_memory(which)) which += which < 40 ? 1 : kStride;
  EXPECT_GT(which, 40 + kStride);
}

// Rank 1 runs out of memory after rank 0 has aborted. The call must report the abort.
TEST(OutOfMemory, IsNotTheReportedReason_AfterEarlierFailure) {
  Communicators ranks = make_ranks(2);
  std::vector<int> buffer(64);
  auto recv = ranks[1]->start(message(Kind::recv, 0, buffer));
  ASSERT_TRUE(recv.ok());
  ranks[0]->abort();
  std::optional<Refusal> refusal(1);
  auto advanced = recv.value()->advance();
  ASSERT_TRUE(refusal->came());
  refusal.reset();
  ASSERT_FALSE(advanced.ok());
  EXPECT_EQ(std::move(advanced).status().message(), "rank 0 aborted the communicator");
}

TEST(OutOfMemory, IsReportedToAllRanks_InSplit) {
  std::uint64_t which = 1;
  for (bool came = true; came; which += which < 40 ? 1 : kStride) {
    Communicators ranks = make_ranks(2);
    came = false;
    const auto statuses = on_all(ranks, [&](Communicator& communicator) {
      if (communicator.rank() == 0) return communicator.split(0, 0, communicator.options()).status();
      const Refusal refusal(which);
      auto part = communicator.split(0, 0, communicator.options());
      came = refusal.came();
      return std::move(part).status();
    });
    EXPECT_EQ(statuses[1].code(), came ? Code::system : Code::ok) << which << ": " << statuses[1].message();
    const Status reported = ranks[0]->failure();  // Rank 0 may have completed the split before the failure.
    EXPECT_EQ(reported.code(), came ? Code::system : Code::ok) << which << ": " << reported.message();
  }
  EXPECT_GT(which, 40 + kStride);
}

// Each allocation of a registration fails in turn. The caller's memory must keep its contents.
TEST(OutOfMemory, LeavesMemoryUnchanged_InRegistration) {
  const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // The first mapping of the process, so that register_memory() finds it after reading a short part of the list of
  // mappings.
  auto* first = reinterpret_cast<void*>(0x10000000);
  void* mapped = ::mmap(first, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* memory = static_cast<std::byte*>(mapped);
  std::uint64_t which = 1;
  for (bool came = true; came && which < 1000; ++which) {
    memory[bytes - 1] = static_cast<std::byte>(which);
    Status enrolled;
    {
      const Refusal refusal(which);
      enrolled = caught([&] { return Regions::of_process().register_memory(memory, bytes); });
      came = refusal.came();
    }
    EXPECT_TRUE(enrolled.ok() || came) << which << ": " << enrolled.message();
    EXPECT_EQ(memory[bytes - 1], static_cast<std::byte>(which));
    if (!enrolled.ok()) continue;
    EXPECT_TRUE(Regions::of_process().deregister_memory(memory).ok());
  }
  EXPECT_GT(which, 3U);
  ::munmap(mapped, bytes);
}

}  // namespace
}  // namespace tutti::test
