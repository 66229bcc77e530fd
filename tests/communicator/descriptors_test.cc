// Ranks that may not open as many files as they want.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/communicator/meeting.h"

namespace tutti {
namespace {

// Leaves this process so many descriptors.
void spare_descriptors(int spare) {
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  const auto limit = static_cast<rlim_t>(next + spare);
  const rlimit files = {limit, limit};
  if (next < 0 || ::setrlimit(RLIMIT_NOFILE, &files) != 0) std::abort();
}

TEST(Descriptors, ThatAreTooFewOnOneRankAreToldToAll) {
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

}  // namespace
}  // namespace tutti
