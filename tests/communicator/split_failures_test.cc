// Splits in which one rank cannot create its sub-communicator: errors of all ranks.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/bootstrap/shared_unique_id.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

void allow_no_more_files() {
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  const rlimit files = {static_cast<rlim_t>(next), static_cast<rlim_t>(next)};
  if (next < 0 || ::setrlimit(RLIMIT_NOFILE, &files) != 0) std::abort();
}

Status use_part(Communicator& parent) {
  const auto part = TUTTI_TRY(parent.split(0, 0, parent.options()));
  std::vector<float> buffer(100);
  return part->run(all_reduce(buffer));
}

class SplitFailure : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Transports, SplitFailure, testing::Values("shm", "tcp"));

// Rank 2 cannot open files, so it can neither receive sockets nor create a board. All ranks must report the cause, and
// none may report that rank 2 died.
TEST_P(SplitFailure, NamesCause_WhenRankCannotCreateSubCommunicator) {
  const std::string cause = GetParam() == "shm" ? "a descriptor from rank 0 was lost" : "Too many open files";
  const Meeting meeting;
  const UniqueId id = meeting.id();
  Processes processes;
  for (Rank rank = 0; rank < 3; ++rank) {
    processes.start([&, rank]() -> std::string {
      CommunicatorOptions options;
      options.transport = GetParam();
      options.timeout_ms = options.init_timeout_ms = 60'000;
      auto made = Communicator::create(id, rank, 3, options);
      if (!made.ok()) return std::move(made).status().message();
      Communicator& parent = *made.value();
      if (auto none = parent.split(-1, 0, options); !none.ok()) return std::move(none).status().message();
      if (rank == 2) allow_no_more_files();
      return use_part(parent).message();
    });
  }
  for (const std::string& text : processes.reports()) {
    EXPECT_EQ(text.find("died"), std::string::npos) << text;
    EXPECT_NE(text.find(cause), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tutti::test
