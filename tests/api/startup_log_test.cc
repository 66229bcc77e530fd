// Log lines about new communicators and calls. The environment of this process is set before the library reads it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "src/base/log.h"
#include "tests/api/ranks.h"

namespace tutti::test {
namespace {

std::mutex startup_mutex;
std::string startup_lines;
char secret_file[] = "/tmp/tutti-secret-XXXXXX";

std::size_t count_of(const std::string& words) {
  const std::lock_guard lock(startup_mutex);
  std::size_t count = 0;
  for (std::size_t at = startup_lines.find(words); at != std::string::npos; at = startup_lines.find(words, at + 1))
    ++count;
  return count;
}

class StartupLog : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const int file = ::mkstemp(secret_file);
    ASSERT_EQ(::write(file, "0123456789abcdef", 16), 16);
    ::close(file);
    for (const char* launcher : {"RANK", "WORLD_SIZE", "TUTTI_ROOT", "TUTTI_TRANSPORT", "TUTTI_ALGORITHM"})
      ::unsetenv(launcher);
    ::setenv("TUTTI_LOG", "trace", 1);
    ::setenv("TUTTI_RANK", "0", 1);
    ::setenv("TUTTI_RANKS", "1", 1);
    ::setenv("NCCL_ALGO", "Ring", 1);
    ::setenv("NCCL_NTHREADS", "256", 1);
    ::setenv("TUTTI_TIMEOUT_MS", "90000", 1);
    ::setenv("TUTTI_TUNE", "exact", 1);
    ::setenv("TUTTI_SECRET_FILE", secret_file, 1);
    set_log_sink([](std::string_view line) {
      const std::lock_guard lock(startup_mutex);
      startup_lines += line;
    });
    tutti_comm comm = nullptr;
    TUTTI_EXPECT_OK(tutti_comm_create_from_environment(nullptr, &comm));
    TUTTI_EXPECT_OK(tutti_comm_destroy(comm));
  }
  static void TearDownTestSuite() {
    set_log_sink(nullptr);
    ::unlink(secret_file);
  }
};

TEST_F(StartupLog, NamesVersionRanksAndLauncher) {
  EXPECT_EQ(count_of("[cpu] TUTTI INFO Tutti 0."), 1U) << startup_lines;
  EXPECT_EQ(count_of(": rank 0 of 1 on host memory, 1 host, created by tutti (TUTTI_RANK, TUTTI_RANKS)\n"), 1U)
      << startup_lines;
}

TEST_F(StartupLog, NamesTransportAndOptions) {
  EXPECT_EQ(count_of("transport: within a host shared memory; TCP encryption off\n"), 1U) << startup_lines;
  EXPECT_EQ(
      count_of("compression raw; algorithm ring (forced by NCCL_ALGO); protocol chosen per call; autotuning exact "
               "(float reductions are not tuned); tuner plugin none; timeout 90 s\n"),
      1U)
      << startup_lines;
}

TEST_F(StartupLog, NamesVariablesThatWereSet_ButNoSecret) {
  EXPECT_EQ(count_of("rank 0, variables: "), 1U) << startup_lines;
  for (const char* variable : {" TUTTI_LOG=trace", " NCCL_ALGO=Ring", " TUTTI_RANKS=1", " TUTTI_TIMEOUT_MS=90000"})
    EXPECT_EQ(count_of(variable), 1U) << variable << " in " << startup_lines;
  EXPECT_EQ(count_of("variables of NCCL that have no effect in Tutti: NCCL_NTHREADS"), 1U) << startup_lines;
  EXPECT_EQ(count_of("0123456789abcdef"), 0U) << startup_lines;
}

TEST_F(StartupLog, NamesAlgorithmOfEachKindOfCallOnce) {
  const Ranks ranks(2);
  ranks.run([](int, tutti_comm comm) {
    for (const std::size_t count : {100, 100, 200, 100}) {
      std::vector<float> send(count), recv(count);
      TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), count, tutti_float32, tutti_sum, comm, nullptr));
    }
  });
  EXPECT_EQ(count_of("rank 0 of 2 on host memory, 1 host, created by tutti_comm_create_all, all in this process\n"),
            1U);
  for (const char* rank : {"0", "1"}) {
    for (const char* count : {"100", "200"}) {
      const std::string call = std::string("rank ") + rank + ", new call all_reduce(" + count + " float32, sum): ";
      EXPECT_EQ(count_of(call + "algorithm ring, protocol "), 1U) << call << startup_lines;
    }
  }
}

}  // namespace
}  // namespace tutti::test
