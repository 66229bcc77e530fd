// The lines that tools parse.
#include "src/base/log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/base/pipe.h"

namespace tutti::test {
namespace {

class Log : public testing::Test {
 protected:
  void SetUp() override {
    lines.clear();
    set_log_sink([](std::string_view line) { lines += line; });
    set_log_level(LogLevel::info);
  }
  void TearDown() override {
    set_log_sink(nullptr);
    set_log_level(LogLevel::warn);
  }
  static std::string lines;
};
std::string Log::lines;

TEST_F(Log, WritesHostProcessThreadRankAndLevel) {
  const LogRank scope(3);
  log(LogLevel::info, "joined %d ranks", 8);
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  EXPECT_EQ(lines, std::string(host) + ":" + std::to_string(::getpid()) + ":" + std::to_string(::gettid()) +
                       " [3] TUTTI INFO joined 8 ranks\n");
}

TEST_F(Log, LeavesTheRankWithItsScope) {
  { const LogRank scope(3); }
  log(LogLevel::warn, "text");
  EXPECT_EQ(lines.find('['), std::string::npos) << lines;
}

TEST_F(Log, DropsWhatNobodyAskedFor) {
  log(LogLevel::trace, "text");
  EXPECT_EQ(lines, "");
  EXPECT_FALSE(logs(LogLevel::trace));
}

TEST_F(Log, CannotBeForgedByNames) {
  log(LogLevel::warn, "host %s", "a\nvm:1:1 TUTTI WARN forged\x1b[2J");
  EXPECT_EQ(lines.find('\n'), lines.size() - 1);
  EXPECT_EQ(lines.find('\x1b'), std::string::npos);
}

TEST_F(Log, CutsALineThatIsTooLong) {
  log(LogLevel::warn, "%s", std::string(5000, 'x').c_str());
  EXPECT_LE(lines.size(), 1024U);
  EXPECT_GT(lines.size(), 1000U);
  EXPECT_EQ(lines.back(), '\n');
}

// Writes a line to a pipe without reader. Returns 0 if the thread's SIGPIPE is as before; a child that ends by SIGPIPE
// does not return.
int log_without_reader() {
  ::signal(SIGPIPE, SIG_DFL);
  Pipe pipe;
  pipe.reading.reset();
  ::dup2(pipe.writing.get(), STDERR_FILENO);
  log(LogLevel::warn, "text");
  sigset_t blocked, pending;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  ::sigpending(&pending);
  return ::sigismember(&blocked, SIGPIPE) == 0 && ::sigismember(&pending, SIGPIPE) == 0 ? 0 : 1;
}

TEST(LogToPipe, LeavesTheProcessAlive_WhenThePipeHasNoReader) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(log_without_reader());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti::test
