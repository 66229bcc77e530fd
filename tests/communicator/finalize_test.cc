// Errors at the end of a communicator: unreceived messages, and ranks that do not call finalize.
#include <gtest/gtest.h>

#include "src/communicator/group.h"
#include "src/communicator/membership/control_plane.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

// Rank 0 sends 3 messages, of which rank 1 receives one. The second one needs several slots, but must count once.
TEST(Finalize, ReportsUnreceivedMessages_OnBothEnds) {
  const std::string reported =
      "rank 1 did not receive 2 of 3 messages from rank 0 on lossy before both left; the first is "
      "send(40000 int32, to rank 1)";
  CommunicatorOptions options;
  options.name = "lossy";
  Communicators ranks = make_ranks(3, options);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    std::vector<int> small(20), large(40'000);
    if (communicator.rank() == 1) TUTTI_CHECK_OK(communicator.run(message(Kind::recv, 0, small)));
    for (std::vector<int>* buffer : {&small, &large, &small}) {
      if (communicator.rank() == 0) TUTTI_CHECK_OK(communicator.run(message(Kind::send, 1, *buffer)));
    }
    return communicator.finalize();
  });
  for (const Rank rank : {0, 1}) {
    EXPECT_EQ(statuses[rank].code(), Code::invalid_usage);
    EXPECT_EQ(statuses[rank].message(), reported);
  }
  EXPECT_TRUE(statuses[2].ok()) << statuses[2].message();  // Rank 2 is not an end of that lane.
  for (const auto& communicator : ranks) EXPECT_TRUE(communicator->failure().ok()) << communicator->failure().message();
}

// The message reaches the other host before its receiver calls recv. It must still count as unreceived.
TEST(Finalize, ReportsUnreceivedMessage_FromAnotherHost) {
  CommunicatorOptions options;
  options.transport = "tcp";
  Communicators ranks = make_ranks(3, options);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    std::vector<int> small(20);
    if (communicator.rank() == 0) TUTTI_CHECK_OK(communicator.run(message(Kind::send, 1, small)));
    return communicator.finalize();
  });
  for (const Rank rank : {0, 1}) {
    EXPECT_EQ(statuses[rank].message(),
              "rank 1 did not receive 1 of 1 messages from rank 0 before both left; the first is "
              "send(20 int32, to rank 1)");
  }
  EXPECT_TRUE(statuses[2].ok()) << statuses[2].message();
}

TEST(Finalize, ReportsUnreceivedMessageToSelf) {
  Communicators ranks = make_ranks(1);
  std::vector<int> sent(20), received(20);
  const Call send = message(Kind::send, 0, sent);
  const Call recv = message(Kind::recv, 0, received);
  ASSERT_TRUE(run_group({{ranks[0].get(), send, {}}, {ranks[0].get(), recv, {}}, {ranks[0].get(), send, {}}}).ok());
  const Status status = ranks[0]->finalize();
  EXPECT_EQ(status.code(), Code::invalid_usage);
  EXPECT_NE(status.message().find("rank 0 did not receive 1 of 2 messages from rank 0"), std::string::npos)
      << status.message();
}

TEST(Finalize, NamesRankThatTimedOut) {
  CommunicatorOptions options;
  options.timeout_ms = 200;
  auto made = Communicator::create_all(2, options);
  ASSERT_TRUE(made.ok());
  const Status status = made.value()[0]->finalize();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_EQ(
      status.message(),
      "finalize of an unnamed communicator of 2 ranks: rank 0 waited 200 ms for rank 1, which has made no collective "
      "call here: a thread that drives several ranks must finalize or destroy them in one group, and threads several "
      "communicators in the same order");
}

// Rank 0 is alone in its process. Rank 1 does not finalize.
TEST(Finalize, SuggestsOrder_OnlyWithSeveralCommunicators) {
  CommunicatorOptions options;
  options.timeout_ms = 200;
  std::vector<std::vector<Mesh>> meshes;
  Communicators ranks;
  for (const bool several : {false, true}) {
    meshes.push_back(Mesh::within_process(Hosts::one_host(2)).value());
    ranks.push_back(std::make_unique<Communicator>(std::make_shared<ControlPlane>(
        0, std::move(meshes.back()[0]), Board::create(2).value(), options, Spread::many_processes)));
    const std::string text = ranks.back()->finalize().message();
    EXPECT_NE(text.find("rank 0 waited 200 ms for rank 1"), std::string::npos) << text;
    EXPECT_EQ(text.find("destroy them in the same order") != std::string::npos, several) << text;
  }
}

TEST(Finalize, ReportsLastCallOfMissingRank) {
  CommunicatorOptions options;
  options.timeout_ms = 200;
  options.name = "gradients";
  auto made = Communicator::create_all(2, options);
  ASSERT_TRUE(made.ok());
  options.timeout_ms = 20'000;
  const auto statuses = on_all(made.value(), [&](Communicator& communicator) {
    std::vector<float> buffer(16);
    return communicator.run(all_reduce(buffer), &options);
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  const std::string text = made.value()[0]->finalize().message();
  EXPECT_EQ(text.find("finalize on gradients: rank 0 waited 200 ms for rank 1, whose last collective call here was #1, "
                      "all_reduce(16 float32, sum): "),
            0U)
      << text;
}

// The last call has a shorter timeout than the communicator. finalize() must use the timeout of the communicator.
TEST(Finalize, UsesOwnTimeout_NotThatOfLastCall) {
  CommunicatorOptions options;
  options.timeout_ms = 200;
  auto made = Communicator::create_all(2, options);
  ASSERT_TRUE(made.ok());
  options.timeout_ms = 100;
  std::vector<float> nothing;
  ASSERT_TRUE(made.value()[0]->run(all_reduce(nothing), &options).ok());  // Waits for no rank.
  const Status status = made.value()[0]->finalize();
  EXPECT_NE(status.message().find(" waited 200 ms for rank 1"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace tutti::test
