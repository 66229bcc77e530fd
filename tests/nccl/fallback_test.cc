// TUTTI_NCCL_FALLBACK: which functions another libnccl.so.2 runs, and the errors if it cannot.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "src/nccl/abi.h"
#include "tests/nccl/clients.h"
#include "tests/nccl/fallback/stand_in.h"

namespace tutti::test {
namespace {

using Calls = std::vector<std::string>;

// The declarations of some of these functions are in headers that need CUDA.
template <typename Function>
Function* nccl_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

ncclResult_t signal_to(int peer, ncclComm_t comm, unsigned flags = 0) {
  return nccl_function<ncclResult_t(int, int, int, unsigned, ncclComm_t, cudaStream_t)>("ncclSignal")(peer, 0, 0, flags,
                                                                                                      comm, nullptr);
}

// Makes a stand-in the fallback library for the scope.
class FallbackTo {
 public:
  explicit FallbackTo(const std::string& path) { ::setenv("TUTTI_NCCL_FALLBACK", path.c_str(), 1); }
  ~FallbackTo() { ::unsetenv("TUTTI_NCCL_FALLBACK"); }
};

// Expects that no rank can create a communicator.
void expect_no_ranks(ncclResult_t expected, const std::string& text) {
  std::vector<ncclComm_t> comms(2);
  EXPECT_EQ(ncclCommInitAll(comms.data(), 2, device_list()), expected);
  expect_error_text(text);
  EXPECT_EQ(comms, std::vector<ncclComm_t>(2, nullptr));
}

TEST(Fallback, RunsFunctions_ThatAreNotImplemented) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  {
    const NcclRanks ranks(3);
    Calls made = there.take();
    EXPECT_EQ(count_of(made, "id"), 1);
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(count_of(made, "init " + std::to_string(rank) + " of 3"), 1);

    NCCL_EXPECT_OK(signal_to(2, ranks[1]));
    int count = 0;
    NCCL_EXPECT_OK(nccl_function<ncclResult_t(ncclComm_t, int*)>("ncclCommQueryProperties")(ranks[0], &count));
    EXPECT_EQ(count, 3);
    EXPECT_EQ(there.take(), Calls{"signal 2 from 1"});
    EXPECT_EQ(nccl_function<nccl::ncclTeam_t(ncclComm_t)>("ncclTeamLsa")(ranks[2]).nRanks, 3);

    EXPECT_EQ(signal_to(2, ranks[1], 1), ncclInvalidArgument);
    expect_error_text("ncclSignal: ncclSignal of " NCCL_STAND_IN " returned 4: the stand-in fails");

    ranks.run([](int rank, ncclComm_t comm) { expect_sum(comm, rank, 6); });
    EXPECT_EQ(there.take(), Calls{}) << "Tutti implements all-reduce";
  }
  EXPECT_EQ(there.take().size(), 3U) << "each rank is destroyed once";
}

TEST(Fallback, RunsCallsOfGroupTogether_AfterThoseOfTutti) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  const NcclRanks ranks(2);
  there.take();
  std::vector<int> values = {1, 2};
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(signal_to(1 - rank, comm));
    NCCL_EXPECT_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, comm, stream_of(rank)));
  }));
  EXPECT_EQ(there.take(), (Calls{"group start", "signal 1 from 0", "signal 0 from 1", "group end"}));
  EXPECT_EQ(values, std::vector<int>(2, 3));
  NCCL_EXPECT_OK(ncclGroupStart());
  EXPECT_EQ(signal_to(0, ranks[0], 1), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(there.take(), (Calls{"group start", "group end"}));
}

// NCCL would write the window at the end of its group, after the job has returned.
TEST(Fallback, RefusesGroups_WithCallsAndJobs) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  const NcclRanks ranks(1);
  there.take();
  std::vector<int> values(100);
  ncclWindow_t window = nullptr;
  const auto enroll = [&] { return ncclCommWindowRegister(ranks[0], values.data(), 400, &window, 0); };
  for (const bool call_first : {false, true}) {
    NCCL_EXPECT_OK(ncclGroupStart());
    EXPECT_EQ(call_first ? signal_to(0, ranks[0]) : enroll(), ncclSuccess);
    EXPECT_EQ(call_first ? enroll() : signal_to(0, ranks[0]), ncclInvalidUsage);
    expect_error_text("must not create or change communicators or register windows; use two groups");
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_EQ(window, nullptr);
  }
  EXPECT_EQ(there.take(), (Calls{"group start", "signal 0 from 0", "group end"}));
  ncclComm_t part = nullptr;
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(signal_to(0, ranks[0]));
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &part, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(part, nullptr);
  NCCL_EXPECT_OK(enroll());
  NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[0], window));
}

TEST(Fallback, RunsNoCalls_OfSimulatedGroups) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  const NcclRanks ranks(1);
  there.take();
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  for (ncclSimInfo_t* const given : {&info, static_cast<ncclSimInfo_t*>(nullptr)}) {
    NCCL_EXPECT_OK(ncclGroupStart());
    NCCL_EXPECT_OK(signal_to(0, ranks[0]));
    EXPECT_EQ(ncclGroupSimulateEnd(given), given == nullptr ? ncclInvalidArgument : ncclInvalidUsage);
    EXPECT_EQ(there.take(), (Calls{"group start", "signal 0 from 0", "group simulated"}));
  }
  NCCL_EXPECT_OK(signal_to(0, ranks[0]));
  EXPECT_EQ(there.take(), Calls{"signal 0 from 0"});
}

TEST(Fallback, MakesWindows) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  const NcclRanks ranks(1);
  std::vector<int> values(100);
  ncclWindow_t window = nullptr;
  NCCL_EXPECT_OK(ncclCommWindowRegister(ranks[0], values.data(), 400, &window, NCCL_WIN_COLL_SYMMETRIC));
  void* found = nullptr;
  NCCL_EXPECT_OK(
      nccl_function<ncclResult_t(ncclWindow_t, size_t, int, void**)>("ncclGetPeerDevicePointer")(window, 8, 0, &found));
  EXPECT_EQ(found, &values[2]);
  there.take();
  const auto put = nccl_function<ncclResult_t(const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int,
                                              unsigned, ncclComm_t, cudaStream_t)>("ncclPutSignal");
  NCCL_EXPECT_OK(put(values.data(), 11, ncclInt32, 0, window, 12, 13, 14, 15, ranks[0], nullptr));
  NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[0], window));
  EXPECT_EQ(there.take(), (Calls{"put 0 from 0", "no window 0"}));
}

TEST(Fallback, BelongsToEachSubCommunicator_AndEndsByAbort) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  const NcclRanks ranks(3);
  there.take();
  std::vector<ncclComm_t> parts(3);
  ranks.run([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(ncclCommSplit(comm, rank == 2 ? NCCL_SPLIT_NOCOLOR : 0, 0, &parts[rank], nullptr));
  });
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(signal_to(rank, parts[rank]));
    NCCL_EXPECT_OK(ncclCommAbort(parts[rank]));
  }
  const Calls made = there.take();
  for (const std::string rank : {"0", "1"}) {
    EXPECT_EQ(count_of(made, "init " + rank + " of 2"), 1);
    EXPECT_EQ(count_of(made, "signal " + rank + " from " + rank), 1);
    EXPECT_EQ(count_of(made, "abort " + rank), 1);
    EXPECT_EQ(count_of(made, "destroy " + rank), 0);
  }
}

TEST(Fallback, EndsCalls_WithThoseOfTutti) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  const NcclRanks ranks(3);
  there.take();
  NCCL_EXPECT_OK(ncclCommRevoke(ranks[0], NCCL_REVOKE_DEFAULT));
  EXPECT_EQ(there.take(), Calls{"abort 0"});
  int excluded = 0;
  run_threads(2, [&](int i) {
    ncclComm_t part = nullptr;
    NCCL_EXPECT_OK(ncclCommShrink(ranks[i + 1], &excluded, 1, &part, nullptr, NCCL_SHRINK_ABORT));
    NCCL_EXPECT_OK(signal_to(i, part));
    NCCL_EXPECT_OK(ncclCommDestroy(part));
  });
  const Calls made = there.take();
  for (const std::string rank : {"1", "2"}) EXPECT_EQ(count_of(made, "abort " + rank), 1);
  EXPECT_EQ(outcome_of(ranks[0]), ncclSuccess);
}

TEST(Fallback, ReportsFailureOfItsCommunicator) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  const NcclRanks ranks(2);
  there.failing_rank = 1;
  EXPECT_EQ(outcome_of(ranks[0]), ncclSuccess);
  EXPECT_EQ(outcome_of(ranks[1]), ncclSystemError);
  expect_error_text("ncclCommGetAsyncError of " NCCL_STAND_IN " returned 2: the stand-in fails");
  there.failing_rank = -1;
}

TEST(Fallback, IsOff_WhenUnset) {
  const NcclRanks ranks(1);
  EXPECT_EQ(signal_to(0, ranks[0]), ncclInvalidUsage);
  expect_error_text("use ncclSend and ncclRecv, or set TUTTI_NCCL_FALLBACK to NVIDIA's libnccl.so.2");
}

TEST(Fallback, RefusesLibraries_ThatCannotServe) {
  {
    const FallbackTo missing("/nowhere/libnccl.so.2");
    expect_no_ranks(ncclSystemError, "TUTTI_NCCL_FALLBACK: /nowhere/libnccl.so.2: cannot open shared object file");
  }
  {
    const FallbackTo old(NCCL_STAND_IN_OLD);
    expect_no_ranks(ncclInvalidUsage, "is NCCL 2.18.5; use 2.28.9 or later");
  }
  {
    const FallbackTo hollow(NCCL_STAND_IN_WITHOUT_INIT);
    expect_no_ranks(ncclInvalidUsage, "has no function ncclCommInitRank");
  }
  Dl_info own = {};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(ncclCommDestroy), &own), 0);
  const FallbackTo itself(own.dli_fname);
  expect_no_ranks(ncclInvalidUsage, "this library; set it to NVIDIA's libnccl.so.2");
}

TEST(Fallback, ReportsFunctions_ThatNeitherLibraryHas) {
  const FallbackTo set(NCCL_STAND_IN_WITHOUT_SIGNAL);
  const NcclRanks ranks(1);
  EXPECT_EQ(signal_to(0, ranks[0]), ncclInvalidUsage);
  expect_error_text("neither Tutti nor NCCL 2.28.9, " NCCL_STAND_IN_WITHOUT_SIGNAL);
}

TEST(Fallback, FailsOnAllRanks_IfItFailsOnOne) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  there.failing_rank = 1;
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  there.take();
  run_threads(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSystemError);
    EXPECT_EQ(comm, nullptr);
  });
  expect_error_text("ncclCommInitRank of " NCCL_STAND_IN " returned 2");
  const Calls made = there.take();
  EXPECT_EQ(count_of(made, "abort 0"), 1);
  EXPECT_EQ(count_of(made, "abort 1"), 0) << "it has no communicator";
  there.failing_rank = -1;
  const NcclRanks ranks(2);
  NCCL_EXPECT_OK(signal_to(0, ranks[1]));
}

// As with NCCL_COMM_BLOCKING=0.
TEST(Fallback, WaitsForRanks_IfJoiningReturnsInProgress) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  there.polls = 3;
  {
    const NcclRanks ranks(2);
    there.take();
    NCCL_EXPECT_OK(signal_to(0, ranks[1]));
    EXPECT_EQ(there.take(), Calls{"signal 0 from 1"});
  }
  EXPECT_EQ(there.take().size(), 2U) << "each rank is destroyed once";
  there.failing_rank = 1;
  expect_no_ranks(ncclSystemError, "returned 2");
  const Calls made = there.take();
  EXPECT_EQ(count_of(made, "abort 0"), 1);
  EXPECT_EQ(count_of(made, "abort 1"), 1);
  there.failing_rank = -1;
  there.polls = 0;
}

TEST(Fallback, StopsJoining_WhenAborted) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  there.polls = -1;
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  there.take();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInProgress);
  Calls made;
  while (count_of(made, "init 0 of 1") == 0) {
    const Calls more = there.take();
    made.insert(made.end(), more.begin(), more.end());
  }
  NCCL_EXPECT_OK(ncclCommAbort(comm));
  EXPECT_EQ(there.take(), Calls{"abort 0"});
  there.polls = 0;
}

TEST(Fallback, AnswersQueriesAndCleansUp_WhenCallsAreForbidden) {
  const FallbackTo set(NCCL_STAND_IN);
  const NcclRanks ranks(2);
  const auto expect_answers = [&](int rank, const std::string& state) {
    EXPECT_EQ(nccl_function<nccl::ncclTeam_t(ncclComm_t)>("ncclTeamLsa")(ranks[rank]).nRanks, 2) << state;
    int count = 0;
    NCCL_EXPECT_OK(nccl_function<ncclResult_t(ncclComm_t, int*)>("ncclCommQueryProperties")(ranks[rank], &count));
    EXPECT_EQ(count, 2) << state;
  };
  const auto clean_up = [&](int rank) {
    return nccl_function<ncclResult_t(ncclComm_t, const void*)>("ncclDevCommDestroy")(ranks[rank], nullptr);
  };
  NCCL_EXPECT_OK(ranks.run_in_group([](int, ncclComm_t comm) {
    NCCL_EXPECT_OK(nccl_function<ncclResult_t(ncclComm_t, int)>("ncclCommSuspend")(comm, 1));
  }));
  expect_answers(0, "suspended");
  NCCL_EXPECT_OK(clean_up(0));
  EXPECT_EQ(signal_to(0, ranks[0]), ncclInvalidUsage);
  NCCL_EXPECT_OK(ranks.run_in_group(
      [](int, ncclComm_t comm) { NCCL_EXPECT_OK(nccl_function<ncclResult_t(ncclComm_t)>("ncclCommResume")(comm)); }));
  NCCL_EXPECT_OK(ncclCommFinalize(ranks[0]));
  expect_answers(0, "finalized");
  NCCL_EXPECT_OK(clean_up(0));
  NCCL_EXPECT_OK(nccl_function<ncclResult_t(ncclComm_t, int)>("ncclCommRevoke")(ranks[1], 0));
  NCCL_EXPECT_OK(clean_up(1));
}

TEST(Fallback, IsFinalizedWithCommunicator_AfterCallsOfGroup) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  const NcclRanks ranks(1);
  there.take();
  NCCL_EXPECT_OK(ranks.run_in_group([](int, ncclComm_t comm) {
    NCCL_EXPECT_OK(signal_to(0, comm));
    NCCL_EXPECT_OK(ncclCommFinalize(comm));
  }));
  EXPECT_EQ(there.take(), (Calls{"group start", "signal 0 from 0", "group end", "finalize 0"}));
}

// NCCL's destroy would wait for the rank that has left.
TEST(Fallback, IsAborted_WhenFailedCommunicatorIsDestroyed) {
  const FallbackTo set(NCCL_STAND_IN);
  StandInNccl& there = stand_in_nccl(NCCL_STAND_IN);
  std::vector<ncclComm_t> comms(2);
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), 2, device_list()));
  NCCL_EXPECT_OK(ncclCommAbort(comms[1]));
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess) NCCL_EXPECT_OK(ncclCommGetAsyncError(comms[0], &state));
  there.take();
  NCCL_EXPECT_OK(ncclCommDestroy(comms[0]));
  EXPECT_EQ(there.take(), Calls{"abort 0"});
}

TEST(Fallback, LogsEachKindOfCall_Once) {
  const std::string file = ::testing::TempDir() + "fallback_log." + std::to_string(::getpid());
  ::unsetenv("TUTTI_LOG");
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("TUTTI_LOG_FILE", file.c_str(), 1);
  {
    const FallbackTo set(NCCL_STAND_IN_WITHOUT_SIGNAL);  // Not used by calls of other tests.
    const NcclRanks ranks(2);
    for (int rank : {0, 1, 1}) {
      int count = 0;
      NCCL_EXPECT_OK(nccl_function<ncclResult_t(ncclComm_t, int*)>("ncclCommQueryProperties")(ranks[rank], &count));
    }
  }
  ::unsetenv("NCCL_DEBUG");
  ::unsetenv("TUTTI_LOG_FILE");
  std::ifstream log(file);
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  ::unlink(file.c_str());
  const std::string line = "ncclCommQueryProperties falls back to " NCCL_STAND_IN_WITHOUT_SIGNAL;
  const std::size_t first = text.find(line);
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(line, first + 1), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti::test
