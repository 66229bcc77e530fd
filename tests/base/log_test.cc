// Format and destination of log lines.
#include "src/base/log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
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

TEST_F(Log, WritesHostProcessThreadDeviceAndLevel) {
  const LogDevice scope(3);
  log(LogLevel::info, "joined %d ranks", 8);
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  EXPECT_EQ(lines, std::string(host) + ":" + std::to_string(::getpid()) + ":" + std::to_string(::gettid()) +
                       " [3] TUTTI INFO joined 8 ranks\n");
}

TEST_F(Log, NamesTheCpu_WhenTheThreadHasNoDevice) {
  { const LogDevice scope(3); }
  log(LogLevel::warn, "text");
  EXPECT_NE(lines.find(" [cpu] TUTTI WARN text\n"), std::string::npos) << lines;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs in a child, since the file stays open for the life of the process.
TEST_F(Log, AppendsToFileOfPattern) {
  char folder[] = "/tmp/tutti-log-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    set_log_sink(nullptr);
    if (!log_to_file(std::string(folder) + "/%h.%p%%")) ::_exit(1);
    log(LogLevel::warn, "first");
    if (log_to_file(std::string(folder) + "/none/log")) ::_exit(2);  // Keeps the open file.
    log(LogLevel::warn, "second");
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string text = content_of(std::string(folder) + "/" + host + "." + std::to_string(child) + "%");
  EXPECT_NE(text.find("TUTTI WARN first\n"), std::string::npos) << text;
  EXPECT_NE(text.find("TUTTI WARN second\n"), std::string::npos) << text;
  std::filesystem::remove_all(folder);
}

TEST(LogFile, KeepsUnknownPlaceholders) {
  EXPECT_EQ(expand_log_file("/x/%d.%p"), "/x/%d." + std::to_string(::getpid()));
  EXPECT_EQ(expand_log_file("100%"), "100%");
}

TEST_F(Log, DropsLinesBelowLevel) {
  log(LogLevel::trace, "text");
  EXPECT_EQ(lines, "");
  EXPECT_FALSE(logs(LogLevel::trace));
}

TEST_F(Log, EscapesControlCharacters) {
  log(LogLevel::warn, "host %s", "a\nvm:1:1 TUTTI WARN forged\x1b[2J");
  EXPECT_EQ(lines.find('\n'), lines.size() - 1);
  EXPECT_EQ(lines.find('\x1b'), std::string::npos);
}

TEST_F(Log, TruncatesLongLines) {
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
