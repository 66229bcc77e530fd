// End of communicators: by destroy in any order, by abort from any thread, by failure.
#include <atomic>
#include <filesystem>
#include <iterator>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

ncclResult_t sum_one(int& value, ncclComm_t comm) {
  return ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr);
}

// Many programs destroy their ranks in such a loop. If the first destroy waited for peers, it would never return.
TEST(Lifecycle, OneThreadDestroysRanks_OneAfterTheOther) {
  std::vector<ncclComm_t> comms(3), others(3);
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), 3, nullptr));
  NCCL_EXPECT_OK(ncclCommInitAll(others.data(), 3, nullptr));
  for (const ncclComm_t comm : comms) NCCL_EXPECT_OK(ncclCommFinalize(comm));
  for (int rank = 0; rank < 3; ++rank) {
    NCCL_EXPECT_OK(ncclCommDestroy(comms[rank]));
    NCCL_EXPECT_OK(ncclCommDestroy(others[2 - rank]));
  }
}

TEST(Lifecycle, DestroyInGroup_RunsAfterItsCalls) {
  std::vector<ncclComm_t> comms(2);
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), 2, nullptr));
  int values[] = {1, 2};
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(sum_one(values[rank], comms[rank]));
    NCCL_EXPECT_OK(ncclCommDestroy(comms[rank]));
  }
  NCCL_EXPECT_OK(ncclGroupEnd());
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[1], 3);
}

TEST(Lifecycle, FinalizesAndDestroysOnce) {
  std::vector<ncclComm_t> comms(2);
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), 2, nullptr));
  NCCL_EXPECT_OK(ncclCommFinalize(comms[0]));
  EXPECT_EQ(ncclCommFinalize(comms[0]), ncclInvalidArgument);
  int value = 0;
  EXPECT_EQ(sum_one(value, comms[0]), ncclInvalidArgument);
  expect_error_text("finalized");
  NCCL_EXPECT_OK(ncclCommCount(comms[0], &value));
  for (const ncclComm_t comm : comms) {
    NCCL_EXPECT_OK(ncclCommDestroy(comm));
    EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
    EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument);
    EXPECT_EQ(sum_one(value, comm), ncclInvalidArgument);
  }
  NCCL_EXPECT_OK(ncclCommDestroy(nullptr));
  NCCL_EXPECT_OK(ncclCommAbort(nullptr));
}

TEST(Lifecycle, BlockingCommunicatorIsNeverInProgress) {
  const NcclRanks ranks(2);
  std::atomic<bool> done = false;
  std::thread watchdog([&] {
    while (!done) {
      for (int rank = 0; rank < 2; ++rank) {
        ncclResult_t state = ncclInProgress;
        NCCL_EXPECT_OK(ncclCommGetAsyncError(ranks[rank], &state));
        EXPECT_EQ(state, ncclSuccess);
        ncclGetLastError(ranks[rank]);
      }
    }
  });
  ranks.run([](int, ncclComm_t comm) {
    for (int i = 0; i < 200; ++i) {
      int value = 1;
      NCCL_EXPECT_OK(sum_one(value, comm));
    }
  });
  done = true;
  watchdog.join();
}

TEST(Lifecycle, AbortEndsCall_OfOtherThreadsAndPeers) {
  std::vector<ncclComm_t> comms(3);
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), 3, nullptr));
  std::thread watchdog;
  run_threads(2, [&](int rank) {  // The third rank never calls.
    if (rank == 0) watchdog = std::thread([&] { NCCL_EXPECT_OK(ncclCommAbort(comms[0])); });
    int value = 1;
    ncclResult_t result = sum_one(value, comms[rank]);
    EXPECT_TRUE(result == ncclRemoteError || (rank == 0 && result == ncclInvalidArgument))
        << ncclGetErrorString(result);
  });
  watchdog.join();
  ncclResult_t state = ncclSuccess;
  NCCL_EXPECT_OK(ncclCommGetAsyncError(comms[1], &state));
  EXPECT_EQ(state, ncclRemoteError);
  EXPECT_STRNE(ncclGetLastError(nullptr), "");
  NCCL_EXPECT_OK(ncclCommDestroy(comms[1])) << "a failed one is destroyed like any other";
  NCCL_EXPECT_OK(ncclCommAbort(comms[2]));
}

TEST(Lifecycle, RejectsDestroy_DuringInit) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ncclComm_t comms[2] = {};
  std::thread joining([&] { NCCL_EXPECT_OK(ncclCommInitRank(&comms[0], 2, id, 0)); });
  ncclComm_t early = nullptr;
  while (early == nullptr) {
    early = __atomic_load_n(&comms[0], __ATOMIC_ACQUIRE);
    std::this_thread::yield();
  }
  EXPECT_EQ(ncclCommDestroy(early), ncclInvalidArgument);
  expect_error_text("have not joined yet");
  NCCL_EXPECT_OK(ncclCommInitRank(&comms[1], 2, id, 1));
  joining.join();
  for (const ncclComm_t comm : comms) NCCL_EXPECT_OK(ncclCommDestroy(comm));
}

// A destroyed rank does not count as dead.
TEST(Lifecycle, DestroyedRankDoesNotAffectPeers) {
  NcclRanks ranks(3);
  ranks.run([](int rank, ncclComm_t comm) {
    int value = rank;
    NCCL_EXPECT_OK(sum_one(value, comm));
  });
  NCCL_EXPECT_OK(ncclCommDestroy(ranks.give_up(0)));
  int sent = 5, received = 0;
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclSend(&sent, 1, ncclInt32, 2, ranks[1], nullptr));
  NCCL_EXPECT_OK(ncclRecv(&received, 1, ncclInt32, 1, ranks[2], nullptr));
  NCCL_EXPECT_OK(ncclGroupEnd());
  EXPECT_EQ(received, 5);
  for (const int rank : {1, 2}) {
    ncclResult_t state = ncclInternalError;
    NCCL_EXPECT_OK(ncclCommGetAsyncError(ranks[rank], &state));
    EXPECT_EQ(state, ncclSuccess);
  }
}

int count_threads() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// No background thread of a destroyed rank remains while its peers still exist.
TEST(Lifecycle, LeavesNothingBehind) {
  NcclRanks ranks(2);
  const int before = count_threads();
  NCCL_EXPECT_OK(ncclCommDestroy(ranks.give_up(0)));
  EXPECT_LE(count_threads(), before);  // A thread of an earlier test may have been listed until now.
}

TEST(Lifecycle, AbortEndsInit_OfAnotherThread) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  std::thread joining([&] { EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclRemoteError); });
  ncclComm_t early = nullptr;
  while (early == nullptr) {
    early = __atomic_load_n(&comm, __ATOMIC_ACQUIRE);
    std::this_thread::yield();
  }
  NCCL_EXPECT_OK(ncclCommAbort(early));
  joining.join();
  EXPECT_EQ(comm, nullptr);
}

TEST(Lifecycle, MismatchIsReportedToWaitingRanks) {
  const NcclRanks ranks(2);
  ranks.run([](int rank, ncclComm_t comm) {
    std::vector<int> values(100);
    EXPECT_EQ(ncclAllReduce(values.data(), values.data(), rank == 0 ? 100 : 99, ncclInt32, ncclSum, comm, nullptr),
              ncclInvalidUsage);
  });
  ncclResult_t state = ncclSuccess;
  NCCL_EXPECT_OK(ncclCommGetAsyncError(ranks[0], &state));
  EXPECT_EQ(state, ncclInvalidUsage);
  expect_error_text("99");
}

TEST(Lifecycle, LastErrorIsSharedByThreads) {
  run_threads(1, [](int) { EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage); });
  expect_error_text("ncclGroupEnd: no group is open");
}

TEST(Lifecycle, SupportsManyCommunicatorsInSequence) {
  for (int i = 0; i < 40; ++i) {
    const NcclRanks ranks(2);
    ranks.run([](int rank, ncclComm_t comm) {
      int value = rank;
      NCCL_EXPECT_OK(sum_one(value, comm));
      EXPECT_EQ(value, 1);
    });
  }
}

}  // namespace
}  // namespace tutti::test
