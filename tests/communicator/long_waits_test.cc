// Ranks that wait long for another say so while they still wait.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "src/base/log.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

std::mutex mutex;
std::string lines;
std::atomic<int> reported = 0;

class LongWaits : public ::testing::Test {
 protected:
  void SetUp() override {
    lines.clear();
    reported = 0;
    set_log_sink([](std::string_view line) {
      if (line.find("has waited") == std::string_view::npos) return;
      const std::lock_guard lock(mutex);
      lines += line;
      ++reported;
    });
  }
  void TearDown() override { set_log_sink(nullptr); }

  static bool said(const std::string& words) {
    const std::lock_guard lock(mutex);
    return lines.find(words) != std::string::npos;
  }
};

// As one that is stopped and goes on: what was awaited comes, and all is well.
TEST_F(LongWaits, AreToldWithTheRankThatIsMissing) {
  Communicators ranks = make_ranks(2);
  std::atomic<bool> over = false;
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    std::vector<float> buffer(100);
    CommunicatorOptions options = communicator.options();
    options.timeout_ms = 4000;
    for (int i = 0; i < 3; ++i) TUTTI_CHECK_OK(communicator.run(all_reduce(buffer), &options));
    EXPECT_EQ(reported, 0);
    while (communicator.rank() == 1 && reported == 0 && !over) std::this_thread::yield();
    Status status = communicator.run(all_reduce(buffer), &options);
    over = true;
    return status;
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(said("rank 0 has waited ")) << lines;
  EXPECT_TRUE(said(" ms for rank 1; rank 1 has not called it, in all_reduce(100 float32, sum) #4; ")) << lines;
  EXPECT_TRUE(said("give up after 4000 ms")) << lines;
}

TEST_F(LongWaits, AreToldOnceOfAWait) {
  Communicators ranks = make_ranks(2);
  std::vector<float> buffer(100);
  CommunicatorOptions options = ranks[0]->options();
  options.timeout_ms = 200;
  EXPECT_EQ(ranks[0]->run(all_reduce(buffer), &options).code(), Code::timeout);
  EXPECT_EQ(reported, 1);
}

TEST_F(LongWaits, OfMessagesAreToldAsWell) {
  Communicators ranks = make_ranks(2);
  std::vector<int> received(10);
  CommunicatorOptions options = ranks[0]->options();
  options.timeout_ms = 200;
  EXPECT_EQ(ranks[0]->run(message(Kind::recv, 1, received), &options).code(), Code::timeout);
  EXPECT_TRUE(said("for rank 1, in recv(10 int32, from rank 1)")) << lines;
}

}  // namespace
}  // namespace tutti::test
