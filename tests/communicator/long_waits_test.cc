// Warnings that ranks log while they wait long for another rank.
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

class LongWaitWarning : public ::testing::Test {
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

// Rank 1 calls only after rank 0 has logged a warning. The warning must name rank 1, and the calls must succeed.
TEST_F(LongWaitWarning, NamesMissingRank) {
  Communicators ranks = make_ranks(2);
  std::atomic<bool> over = false;
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    std::vector<float> buffer(100);
    CommunicatorOptions options = communicator.options();
    options.timeout_ms = 4000;
    for (int i = 0; i < 3; ++i) TUTTI_CHECK_OK(communicator.run(all_reduce(buffer), &options));
    while (communicator.rank() == 1 && !said("#4: rank 0 has waited ") && !over) std::this_thread::yield();
    Status status = communicator.run(all_reduce(buffer), &options);
    over = true;
    return status;
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(said("all_reduce(100 float32, sum) #4: rank 0 has waited ")) << lines;
  EXPECT_TRUE(said(" s for rank 1, which has not called it (gives up after 4 s)")) << lines;
}

// Ranks on one host, on two, and each on a host of its own.
class TimeoutOnHosts : public ::testing::TestWithParam<std::vector<Rank>> {};
INSTANTIATE_TEST_SUITE_P(, TimeoutOnHosts,
                         testing::Values(std::vector<Rank>{0, 0, 0, 0}, std::vector<Rank>{0, 0, 1, 1},
                                         std::vector<Rank>{0, 1, 2, 3}));

// Rank 1 begins the broadcast and then does nothing. Rank 3 waits for rank 2, which waits for rank 1.
TEST_P(TimeoutOnHosts, NamesRankThatHoldsUpOthers) {
  Communicators ranks = Communicator::create_all(Hosts(GetParam()), {}).value();
  std::atomic<int> ended = 0;
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    std::vector<float> buffer(100);
    CommunicatorOptions options = communicator.options();
    options.algorithm = "chain";
    options.timeout_ms = communicator.rank() == 3 ? 2000 : 60'000;
    options.update_agreement_hash();
    Call call = all_reduce(buffer);
    call.collective = Collective::broadcast;
    if (communicator.rank() != 1) {
      Status status = communicator.run(call, &options);
      ++ended;
      return status;
    }
    std::vector<std::unique_ptr<Operation>> started(1);
    started[0] = TUTTI_TRY(communicator.start(call, &options));
    while (ended < 3) std::this_thread::yield();
    return drive(started);
  });
  for (const Rank rank : {2, 3}) {
    EXPECT_EQ(statuses[rank].code(), Code::timeout);
    EXPECT_NE(statuses[rank].message().find("rank 3 waited 2 s for rank 1"), std::string::npos)
        << statuses[rank].message();
    EXPECT_NE(statuses[rank].message().find(" (rank 3 waits for rank 2, which waits for rank 1)"), std::string::npos)
        << statuses[rank].message();
  }
}

// Rank 1 does not call. The other ranks give up at the same time, and each must name rank 1.
TEST_P(TimeoutOnHosts, NamesSilentRankOnAllRanks) {
  Communicators ranks = Communicator::create_all(Hosts(GetParam()), {}).value();
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    if (communicator.rank() == 1) return {};
    std::vector<float> buffer(100'000);
    CommunicatorOptions options = communicator.options();
    options.algorithm = "ring";
    options.timeout_ms = 2000;
    options.update_agreement_hash();
    return communicator.run(all_reduce(buffer), &options);
  });
  for (const Rank rank : {0, 2, 3}) {
    EXPECT_EQ(statuses[rank].code(), Code::timeout);
    EXPECT_NE(statuses[rank].message().find(" waited 2 s for rank 1"), std::string::npos) << statuses[rank].message();
  }
}

// Each of two ranks waits in a recv for the other.
TEST(Timeout, ShowsThatRanksReceiveFromEachOther) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    std::vector<float> buffer(100);
    CommunicatorOptions options = communicator.options();
    options.timeout_ms = communicator.rank() == 0 ? 2000 : 60'000;
    Call call = all_reduce(buffer);
    call.kind = Kind::recv;
    call.root = 1 - communicator.rank();
    return communicator.run(call, &options);
  });
  EXPECT_NE(statuses[0].message().find("rank 0 waited 2 s for rank 1 (rank 0 waits for rank 1, which waits for rank 0 "
                                       "in a recv)"),
            std::string::npos)
      << statuses[0].message();
}

// Rank 2 does not receive what rank 0 sends, so that rank 0 does not finalize.
TEST(Timeout, ShowsSendOfAwaitedRank_InFinalize) {
  CommunicatorOptions of_finalize;
  of_finalize.timeout_ms = 2000;
  Communicators ranks = Communicator::create_all(3, of_finalize).value();
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    if (communicator.rank() == 2) return {};
    if (communicator.rank() == 1) return communicator.finalize();
    std::vector<int> values(1'000'000);  // More than lanes hold.
    CommunicatorOptions options = communicator.options();
    options.timeout_ms = 60'000;
    return communicator.run(message(Kind::send, 2, values), &options);
  });
  for (const Rank rank : {0, 1}) {
    EXPECT_EQ(statuses[rank].code(), Code::timeout);
    EXPECT_NE(statuses[rank].message().find("rank 1 waits for rank 0, which waits for rank 2 in a send)"),
              std::string::npos)
        << statuses[rank].message();
  }
}

TEST_F(LongWaitWarning, IsLoggedOncePerWait) {
  Communicators ranks = make_ranks(2);
  std::vector<float> buffer(100);
  CommunicatorOptions options = ranks[0]->options();
  options.timeout_ms = 2000;
  EXPECT_EQ(ranks[0]->run(all_reduce(buffer), &options).code(), Code::timeout);
  EXPECT_EQ(reported, 1);
}

// Other waits warn after a quarter of the timeout, which would be 15 s. A rank in finalize must warn after 5 s.
TEST_F(LongWaitWarning, SuggestsRemedy_InFinalize) {
  Communicators ranks = make_ranks(2);
  std::thread first([&] { EXPECT_TRUE(ranks[0]->finalize().ok()); });
  while (reported == 0) std::this_thread::yield();
  EXPECT_TRUE(said("finalize of an unnamed communicator of 2 ranks: rank 0 has waited ")) << lines;
  EXPECT_TRUE(
      said(" s for rank 1, which has made no collective call here (gives up after 1 min): a thread that drives "
           "several ranks must finalize or destroy them in one group"))
      << lines;
  EXPECT_TRUE(ranks[1]->finalize().ok());
  first.join();
}

TEST_F(LongWaitWarning, CoversMessages) {
  Communicators ranks = make_ranks(2);
  std::vector<int> received(10);
  CommunicatorOptions options = ranks[0]->options();
  options.timeout_ms = 2000;
  EXPECT_EQ(ranks[0]->run(message(Kind::recv, 1, received), &options).code(), Code::timeout);
  EXPECT_TRUE(said("recv(10 int32, from rank 1): rank 0 has waited ")) << lines;
}

}  // namespace
}  // namespace tutti::test
