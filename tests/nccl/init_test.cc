// Creation of communicators, and its errors.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/nccl/clients.h"

extern "C" ncclResult_t ncclDevCommDestroy(ncclComm_t, const void*);  // Its header is for nvcc.

namespace tutti::test {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

// During its lifetime, the environment selects GPUs, which is the default.
class OnGpus {
 public:
  OnGpus() { ::unsetenv("TUTTI_NCCL_MEMORY"); }
  ~OnGpus() { ::setenv("TUTTI_NCCL_MEMORY", "host", 1); }
};

bool has_gpu() {
  const OnGpus here;
  void* memory = nullptr;
  return ncclMemAlloc(&memory, 8) == ncclSuccess && ncclMemFree(memory) == ncclSuccess;
}

TEST(Init, SuggestsHostMemory_WithoutGpu) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU here";
  ncclUniqueId id = {};
  {
    const OnGpus here;
    NCCL_EXPECT_OK(ncclGetUniqueId(&id)) << "for ranks on other hosts";
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidUsage);
    expect_error_text("set TUTTI_NCCL_MEMORY=host");
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclInvalidUsage);
    void* memory = nullptr;
    EXPECT_EQ(ncclMemAlloc(&memory, 8), ncclInvalidUsage);
    expect_error_text("ncclMemAlloc: ");
    EXPECT_EQ(ncclMemAlloc(nullptr, 8), ncclInvalidArgument);
    NCCL_EXPECT_OK(ncclMemFree(nullptr));
    int mine = 0;
    EXPECT_NE(ncclMemFree(&mine), ncclSuccess);
    int version = 0;
    NCCL_EXPECT_OK(ncclGetVersion(&version));
    EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
  }
  ncclComm_t comm = nullptr;
  NCCL_EXPECT_OK(ncclCommInitRank(&comm, 1, id, 0)) << "the id is a good one";
  NCCL_EXPECT_OK(ncclCommDestroy(comm));
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs in children, since the line is printed once in a process.
TEST(Init, PrintsVersionOnce_WhenNcclDebugAsksForIt) {
  for (const char* level : {"VERSION", "info", "NONE"}) {
    char folder[] = "/tmp/tutti-nccl-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::unsetenv("TUTTI_LOG");
      ::unsetenv("TUTTI_LOG_FILE");
      ::setenv("NCCL_DEBUG", level, 1);
      ::setenv("NCCL_DEBUG_FILE", (std::string(folder) + "/log.%p").c_str(), 1);
      ncclComm_t comms[2] = {};
      for (ncclComm_t& comm : comms) (void)ncclCommInitAll(&comm, 1, nullptr);
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const std::string text = content_of(std::string(folder) + "/log." + std::to_string(child));
    const std::string line = "NCCL version 2.28.9+cuda13.0 (served by Tutti ";
    const std::size_t found = text.find(line);
    EXPECT_EQ(found != std::string::npos, std::strcmp(level, "NONE") != 0) << level << ": " << text;
    EXPECT_EQ(text.find(line, found + 1), std::string::npos) << level << ": " << text;
    std::filesystem::remove_all(folder);
  }
}

// SIGPIPE would end the process.
TEST(Init, SurvivesVersionLine_WhenNoOneReadsTheLog) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer itself writes to the closed pipe after fork()";
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::unsetenv("TUTTI_LOG");
    ::setenv("NCCL_DEBUG", "VERSION", 1);
    ::dup2(ends[1], STDERR_FILENO);
    ncclComm_t comm = nullptr;
    ::_exit(ncclCommInitAll(&comm, 1, nullptr) == ncclSuccess ? 0 : 1);
  }
  ::close(ends[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Init, RejectsUnknownMemory) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  ::setenv("TUTTI_NCCL_MEMORY", "managed", 1);
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidUsage);
  expect_error_text("\"managed\"");
  ::setenv("TUTTI_NCCL_MEMORY", "host", 1);
  EXPECT_EQ(comm, nullptr);
  NCCL_EXPECT_OK(ncclCommInitRank(&comm, 1, id, 0));
  NCCL_EXPECT_OK(ncclCommDestroy(comm));
}

TEST(Init, RejectsInvalidArguments) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  EXPECT_EQ(ncclGetUniqueId(nullptr), ncclInvalidArgument);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
  expect_error_text("ncclCommInitRank: rank is 2: pass 0 to 1");
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 1), ncclInvalidArgument);
  expect_error_text("ncclCommInitRank: rank is 1: pass 0");
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, -1), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(&comm, 0, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(nullptr, 1, nullptr), ncclInvalidArgument);
  // The call writes no entry, since `comm` is only one.
  EXPECT_EQ(ncclCommInitAll(&comm, 70'000, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 0, &id, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 2, &id, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr), ncclInvalidArgument);
  ncclUniqueId garbage;
  std::memset(&garbage, 0x5a, sizeof garbage);
  EXPECT_NE(ncclCommInitRank(&comm, 1, garbage, 0), ncclSuccess);
  EXPECT_EQ(std::string(ncclGetLastError(nullptr)).find("ncclCommInitRank: invalid unique id: call ncclGetUniqueId on"),
            0U)
      << ncclGetLastError(nullptr);
  EXPECT_EQ(comm, nullptr);
}

void expect_seats(const std::vector<ncclComm_t>& comms) {
  for (std::size_t i = 0; i < comms.size(); ++i) {
    int count = -1, rank = -1, device = -1;
    NCCL_EXPECT_OK(ncclCommCount(comms[i], &count));
    NCCL_EXPECT_OK(ncclCommUserRank(comms[i], &rank));
    NCCL_EXPECT_OK(ncclCommCuDevice(comms[i], &device));
    EXPECT_EQ(count, static_cast<int>(comms.size()));
    EXPECT_EQ(rank, static_cast<int>(i));
    EXPECT_GE(device, 0);
    NCCL_EXPECT_OK(ncclCommDestroy(comms[i]));
  }
}

TEST(Init, JoinsThreads) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comms(3);
  run_threads(3, [&](int rank) { NCCL_EXPECT_OK(ncclCommInitRank(&comms[rank], 3, id, rank)); });
  expect_seats(comms);
}

TEST(Init, JoinsRanksOfOneThread_InGroup) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comms(3);
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < 3; ++rank) NCCL_EXPECT_OK(ncclCommInitRank(&comms[rank], 3, id, rank));
  int count = 0;
  EXPECT_EQ(ncclCommCount(comms[0], &count), ncclInvalidArgument) << "its ranks join at the end of the group";
  NCCL_EXPECT_OK(ncclGroupEnd());
  expect_seats(comms);
}

TEST(Init, JoinsByFirstOfSeveralIds) {
  ncclUniqueId ids[2];
  for (ncclUniqueId& id : ids) NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comms(2);
  run_threads(2, [&](int rank) { NCCL_EXPECT_OK(ncclCommInitRankScalable(&comms[rank], 2, rank, 2, ids, nullptr)); });
  expect_seats(comms);
}

TEST(Init, InitAllAcceptsSameDeviceTwice) {
  std::vector<ncclComm_t> comms(2);
  const int devices[] = {3, 3};
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), 2, devices));
  int device = -1;
  NCCL_EXPECT_OK(ncclCommCuDevice(comms[1], &device));
  EXPECT_EQ(device, 3);
  expect_seats(comms);
}

TEST(Init, InitAllJoinsOpenGroup) {
  std::vector<ncclComm_t> comms(2);
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), 2, nullptr));
  NCCL_EXPECT_OK(ncclGroupEnd());
  expect_seats(comms);
}

TEST(Init, LeavesNothing_WhenGroupFails) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr, other = nullptr;
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclCommInitRank(&comm, 2, id, 0));
  EXPECT_NE(comm, nullptr);
  EXPECT_EQ(ncclCommInitRank(&other, 2, id, 5), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Init, RejectsInvalidHandles) {
  int number = 0;
  ncclResult_t state = ncclSuccess;
  std::vector<char> memory(256, 'x');
  for (void* garbage :
       {static_cast<void*>(memory.data()), reinterpret_cast<void*>(0x10), static_cast<void*>(nullptr)}) {
    const auto comm = static_cast<ncclComm_t>(garbage);
    EXPECT_EQ(ncclCommCount(comm, &number), ncclInvalidArgument);
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(&number, &number, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(comm), garbage == nullptr ? ncclSuccess : ncclInvalidArgument);
    EXPECT_EQ(ncclCommAbort(comm), garbage == nullptr ? ncclSuccess : ncclInvalidArgument);
  }
}

TEST(Init, ReturnsNullWindow_ForHostMemory) {
  const NcclRanks ranks(1);
  alignas(4096) static char buffer[4096];
  auto window = reinterpret_cast<ncclWindow_t>(buffer);
  NCCL_EXPECT_OK(ncclCommWindowRegister(ranks[0], buffer, sizeof buffer, &window, NCCL_WIN_COLL_SYMMETRIC));
  EXPECT_EQ(window, nullptr);
  NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[0], window));
}

TEST(Init, RejectsUnknownWindowFlags) {
  const NcclRanks ranks(1);
  alignas(4096) static char buffer[4096];
  for (const int known : {0, 1, 2, 3}) {
    auto window = reinterpret_cast<ncclWindow_t>(buffer);
    NCCL_EXPECT_OK(ncclCommWindowRegister(ranks[0], buffer, sizeof buffer, &window, known));
  }
  ncclWindow_t window = nullptr;
  EXPECT_EQ(ncclCommWindowRegister(ranks[0], buffer, sizeof buffer, &window, 0x7777), ncclInvalidArgument);
  expect_error_text("winFlags 30583 has unknown bits");
}

TEST(Init, ReportsUnimplementedFunctions) {
  const NcclRanks ranks(1);
  EXPECT_EQ(ncclDevCommDestroy(ranks[0], nullptr), ncclInvalidUsage);
  expect_error_text("ncclDevCommDestroy: the device API is not implemented");
  ncclResult_t state = ncclInProgress;
  NCCL_EXPECT_OK(ncclCommGetAsyncError(ranks[0], &state));
  EXPECT_EQ(state, ncclSuccess);
}

TEST(Init, MemAllocReturnsMemory) {
  void* memory = nullptr;
  NCCL_EXPECT_OK(ncclMemAlloc(&memory, 100'000));
  std::memset(memory, 1, 100'000);
  NCCL_EXPECT_OK(ncclMemFree(memory));
  NCCL_EXPECT_OK(ncclMemFree(nullptr));
  NCCL_EXPECT_OK(ncclMemAlloc(&memory, 0));
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(ncclMemAlloc(nullptr, 8), ncclInvalidArgument);
  int mine = 0;
  EXPECT_NE(ncclMemFree(&mine), ncclSuccess);
}

}  // namespace
}  // namespace tutti::test
