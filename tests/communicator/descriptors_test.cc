// Ranks that reach the limit of open files or of file size. The error must name the limit and the command to raise it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/bootstrap/shared_unique_id.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

// Lowers the limit of open files so that this process can open only `spare` more.
void spare_descriptors(int spare) {
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  const auto limit = static_cast<rlim_t>(next + spare);
  const rlimit files = {limit, limit};
  if (next < 0 || ::setrlimit(RLIMIT_NOFILE, &files) != 0) std::abort();
}

TEST(DescriptorLimit, IsReportedToAllRanks_WhenJoining) {
  for (const int spare : {4, 6, 8}) {
    const Meeting meeting;
    const UniqueId id = meeting.id();
    Processes processes;
    for (Rank rank = 0; rank < 8; ++rank) {
      processes.start([=] {
        if (rank == 0) spare_descriptors(spare);
        return Bootstrap::join(id, rank, 8, {}).status().message();
      });
    }
    for (const std::string& text : processes.reports()) {
      EXPECT_NE(text.find("Too many open files: the limit of this process is"), std::string::npos) << text;
      EXPECT_NE(text.find("raise it with ulimit -n"), std::string::npos) << text;
      EXPECT_NE(text.find("while rank 0 was joining"), std::string::npos) << text;
    }
  }
}

TEST(FileSizeLimit, IsReportedToAllRanks_WhenCreatingTheBoard) {
  const Meeting meeting;
  const UniqueId id = meeting.id();
  Processes processes;
  for (Rank rank = 0; rank < 3; ++rank) {
    processes.start([=] {
      const rlimit size = {1024, 1024};
      if (rank == 0 && ::setrlimit(RLIMIT_FSIZE, &size) != 0) std::abort();
      return Communicator::create(id, rank, 3, {}).status().message();
    });
  }
  for (const std::string& text : processes.reports()) {
    EXPECT_NE(text.find("raise the limit of file size (ulimit -f)"), std::string::npos) << text;
    EXPECT_NE(text.find("while rank 0 was joining"), std::string::npos) << text;
  }
}

// UndefinedBehaviorSanitizer, which runs with AddressSanitizer, opens pipes to check whether memory is readable.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kNeedsFiles = true;
#else
constexpr bool kNeedsFiles = false;
#endif

// While it exists, this process cannot open files, such as the memory of lanes.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_ = {};
};

void expect_files_reported(Communicator& peer) {
  EXPECT_EQ(peer.failure().code(), Code::system);
  EXPECT_NE(peer.failure().message().find("Too many open files"), std::string::npos) << peer.failure().message();
}

TEST(DescriptorLimit, IsReportedToAllRanks_WhenStartingCollective) {
  if (kNeedsFiles) GTEST_SKIP() << "the sanitizer opens files itself";
  Communicators ranks = make_ranks(2);
  std::vector<float> buffer(16);
  const NoMoreFiles limited;
  EXPECT_EQ(ranks[1]->start(all_reduce(buffer)).status().code(), Code::system);
  expect_files_reported(*ranks[0]);
}

TEST(DescriptorLimit, IsCheckedInAdvance_ForRanksOfOneProcess) {
  if (kNeedsFiles) GTEST_SKIP() << "the sanitizer opens files itself";
  const NoMoreFiles limited;
  auto made = Communicator::create_all(16, {});
  ASSERT_FALSE(made.ok());
  const Status status = std::move(made).status();
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_EQ(status.message().find("16 ranks in one process take 272 descriptors"), 0U) << status.message();
  EXPECT_NE(status.message().find("the limit of this process is 0: raise it with ulimit -n"), std::string::npos)
      << status.message();
}

TEST(DescriptorLimit, IsReportedToAllRanks_WhenConnectingMessage) {
  if (kNeedsFiles) GTEST_SKIP() << "the sanitizer opens files itself";
  Communicators ranks = make_ranks(2);
  std::vector<int> buffer(16);
  const auto recv = ranks[1]->start(message(Kind::recv, 0, buffer));
  ASSERT_TRUE(recv.ok());
  const NoMoreFiles limited;
  EXPECT_EQ(recv.value()->advance().status().code(), Code::system);
  expect_files_reported(*ranks[0]);
}

}  // namespace
}  // namespace tutti::test
