// Ranks in separate processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/base/pipe.h"
#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;

// Rank 0 makes the id and sends it to the others.
ncclComm_t join(int rank, const Pipe& pipe) {
  ncclUniqueId id = {};
  if (rank == 0 && ncclGetUniqueId(&id) != ncclSuccess) return nullptr;
  for (int other = 1; rank == 0 && other < kRanks; ++other) {
    if (::write(pipe.writing.get(), &id, sizeof id) != sizeof id) return nullptr;
  }
  if (rank != 0 && ::read(pipe.reading.get(), &id, sizeof id) != sizeof id) return nullptr;
  ncclComm_t comm = nullptr;
  if (ncclCommInitRank(&comm, kRanks, id, rank) != ncclSuccess) ::fprintf(stderr, "%s\n", ncclGetLastError(nullptr));
  return comm;
}

// Forks a process per rank, which exits with the result of its body.
void run_processes(const std::function<int(int)>& body, int (*end)(int)) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) end(body(rank));
    children.push_back(child);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = -1;
    EXPECT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(killed || status == 0) << "rank " << rank << " ended with " << status;
  }
}

int leave_at_once(int status) { ::_exit(status); }
int leave_by_exit(int status) { ::exit(status); }

template <typename Result>
bool is(const std::vector<std::int32_t>& values, const Result& expected) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != expected(i)) {
      ::fprintf(stderr, "element %zu is %d, not %d\n", i, values[i], expected(i));
      return false;
    }
  }
  return true;
}

int use_all(int rank, ncclComm_t comm) {
  constexpr std::size_t count = 10'000;
  const auto send = values_of<std::int32_t>(rank, count * kRanks);
  std::vector<std::int32_t> one(count), all(count * kRanks);
  const auto by_rank = [](std::size_t i) { return value_of(static_cast<int>(i / count), i % count); };
  const auto mine = static_cast<std::size_t>(rank) * count;
  const auto at = [&](ncclResult_t result, bool right) { return result == ncclSuccess && right; };

  ncclResult_t r = ncclAllReduce(send.data(), one.data(), count, ncclInt32, ncclSum, comm, nullptr);
  if (!at(r, is(one, [](std::size_t i) { return sum_of(kRanks, i); }))) return 2;
  r = ncclAllGather(send.data(), all.data(), count, ncclInt32, comm, nullptr);
  if (!at(r, is(all, by_rank))) return 3;
  r = ncclReduceScatter(send.data(), one.data(), count, ncclInt32, ncclSum, comm, nullptr);
  if (!at(r, is(one, [=](std::size_t i) { return sum_of(kRanks, mine + i); }))) return 4;
  r = ncclBroadcast(send.data(), one.data(), count, ncclInt32, 1, comm, nullptr);
  if (!at(r, is(one, [](std::size_t i) { return value_of(1, i); }))) return 5;
  r = ncclAlltoAll(send.data(), all.data(), count, ncclInt32, comm, nullptr);
  if (!at(r, is(all, [=](std::size_t i) { return value_of(static_cast<int>(i / count), mine + i % count); }))) return 6;
  r = ncclReduce(send.data(), rank == 2 ? one.data() : nullptr, count, ncclInt32, ncclSum, 2, comm, nullptr);
  if (!at(r, rank != 2 || is(one, [](std::size_t i) { return sum_of(kRanks, i); }))) return 7;
  r = ncclGather(send.data(), rank == 0 ? all.data() : nullptr, count, ncclInt32, 0, comm, nullptr);
  if (!at(r, rank != 0 || is(all, by_rank))) return 8;
  r = ncclScatter(send.data(), one.data(), count, ncclInt32, 0, comm, nullptr);
  if (!at(r, is(one, [=](std::size_t i) { return value_of(0, mine + i); }))) return 9;
  return 0;
}

TEST(MultiProcess, RunsEveryCollective) {
  const Pipe pipe;
  run_processes(
      [&](int rank) {
        const ncclComm_t comm = join(rank, pipe);
        const int status = comm == nullptr ? 1 : use_all(rank, comm);
        return ncclCommDestroy(comm) == ncclSuccess ? status : 10;
      },
      leave_by_exit);
}

// Often enough to detect the death of another rank.
bool exchange(ncclComm_t comm, int peer) {
  for (int i = 0; i < 5'000; ++i) {
    int sent = i, received = -1;
    ncclGroupStart();
    ncclSend(&sent, 1, ncclInt32, peer, comm, nullptr);
    ncclRecv(&received, 1, ncclInt32, peer, comm, nullptr);
    if (ncclGroupEnd() != ncclSuccess || received != i) return false;
  }
  ncclResult_t state = ncclInternalError;
  return ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclSuccess;
}

// The root completes its broadcast before the others begin theirs, and its process exits.
int broadcast_and_leave(int rank, ncclComm_t comm, const Pipe& late) {
  std::vector<std::int32_t> values = values_of<std::int32_t>(rank, 8);
  const auto broadcast = [&] { return ncclBcast(values.data(), 8, ncclInt32, 0, comm, nullptr) == ncclSuccess; };
  if (!broadcast()) return 2;  // The first call of a kind connects all ranks.
  if (rank != 0) values.assign(8, -1);
  char byte = 0;
  if (rank != 0 && ::read(late.reading.get(), &byte, 1) != 1) return 3;
  const bool done = broadcast();
  if (rank == 0 && ::write(late.writing.get(), "ab", 2) != 2) return 4;
  if (!done || (rank != 0 && !exchange(comm, 3 - rank))) return 5;
  if (ncclCommDestroy(comm) != ncclSuccess) return 6;
  return is(values, [](std::size_t i) { return value_of(0, i); }) ? 0 : 7;
}

TEST(MultiProcess, RankMayExit_BeforePeersFinish) {
  const Pipe pipe, late;
  run_processes(
      [&](int rank) {
        const ncclComm_t comm = join(rank, pipe);
        return comm == nullptr ? 1 : broadcast_and_leave(rank, comm, late);
      },
      leave_by_exit);
}

TEST(MultiProcess, ReportsRankDeath) {
  const Pipe pipe;
  run_processes(
      [&](int rank) {
        const ncclComm_t comm = join(rank, pipe);
        if (comm == nullptr) return 1;
        if (rank == 1) ::raise(SIGKILL);
        int value = 1;
        if (ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr) != ncclRemoteError) return 2;
        ncclResult_t state = ncclSuccess;
        if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclRemoteError) return 3;
        return ncclCommAbort(comm) == ncclSuccess ? 0 : 4;
      },
      leave_at_once);
}

void expect_end(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

bool sum_is_right(int rank, ncclComm_t comm) {
  int value = rank + 1;
  return ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr) == ncclSuccess && value == 6;
}

// Destroys a communicator at exit, like a global object of a program.
struct DestroysAtExit {
  ncclComm_t comm = nullptr;
  ~DestroysAtExit() {
    if (ncclCommDestroy(comm) != ncclSuccess || ncclCommDestroy(comm) != ncclInvalidArgument) ::_exit(3);
    if (std::string(ncclGetLastError(nullptr)).find("not a communicator") == std::string::npos) ::_exit(4);
  }
};

int leave_by_destructor(int rank, const Pipe& pipe) {
  static DestroysAtExit global;
  ncclGetLastError(nullptr);  // Thread-local state is destroyed before the global.
  global.comm = join(rank, pipe);
  return global.comm != nullptr && sum_is_right(rank, global.comm) ? 0 : 1;
}

// If ncclCommDestroy() waited for peers, the children would wait for the parent, which waits for the children.
TEST(MultiProcess, RankMayExit_WhilePeersStay) {
  const Pipe pipe;
  std::vector<pid_t> children;
  for (int rank = 1; rank < kRanks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) ::exit(leave_by_destructor(rank, pipe));
    children.push_back(child);
  }
  const ncclComm_t comm = join(0, pipe);
  EXPECT_TRUE(sum_is_right(0, comm));
  for (const pid_t child : children) expect_end(child);
  ncclResult_t state = ncclInternalError;
  NCCL_EXPECT_OK(ncclCommGetAsyncError(comm, &state));
  EXPECT_EQ(state, ncclSuccess) << ncclGetLastError(nullptr);
  NCCL_EXPECT_OK(ncclCommDestroy(comm));
}

// A forked child cannot use the parent's communicators, and exits normally.
TEST(MultiProcess, ForkedChildCannotUseParentsCommunicators) {
  const NcclRanks ranks(2);
  const pid_t child = ::fork();
  if (child == 0) {
    int value = 0;
    ::_exit(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, ranks[0], nullptr) == ncclInvalidArgument ? 0 : 1);
  }
  expect_end(child);
}

TEST(MultiProcess, MayFork_WhileAnotherThreadQueries) {
  const NcclRanks ranks(1);
  std::atomic<bool> done = false;
  std::thread watchdog([&] {
    while (!done) {
      ncclResult_t state = ncclSuccess;
      NCCL_EXPECT_OK(ncclCommGetAsyncError(ranks[0], &state));
      EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    }
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // A lock of a thread that does not exist in the child would hang: fail instead.
      const bool refused = ncclCommDestroy(ranks[0]) == ncclInvalidArgument;
      ::_exit(refused && ncclGetLastError(nullptr)[0] != '\0' ? 0 : 1);
    }
    expect_end(child);
  }
  done = true;
  watchdog.join();
}

// Communicators of the parent, current or destroyed, do not affect the child.
TEST(MultiProcess, ForkedChildCanCreateCommunicators) {
  { const NcclRanks ranks(2); }
  const NcclRanks ranks(2, non_blocking_config());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ncclComm_t comm = nullptr;
    int value = 3;
    const bool made = ncclCommInitAll(&comm, 1, nullptr) == ncclSuccess;
    const bool called = ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr) == ncclSuccess;
    const bool refused = ncclCommDestroy(ranks[0]) == ncclInvalidArgument;
    ::_exit(made && called && refused && ncclCommDestroy(comm) == ncclSuccess ? 0 : 1);
  }
  expect_end(child);
}

}  // namespace
}  // namespace tutti::test
