#include "src/plan/message_rounds.h"

#include <gtest/gtest.h>

#include "tests/plan/samples.h"

namespace tutti::test {
namespace {

constexpr Loop kOverlapping = {.chunks = 8, .skew = 1, .order = StageOrder::earliest_first, .slots = 4};

// A message of rank 0 to rank 1, or a signal: rounds in which it is sent and received.
struct Message {
  std::uint32_t sent = 0, received = 0;
  bool flag = false;
};

// Two ranks whose rounds are stages of one round each, or one stage.
std::vector<Plan> plans_of(std::vector<Message> messages, std::uint32_t rounds, bool stages) {
  std::vector<Plan> plans(2);
  for (Rank self = 0; self < 2; ++self) {
    Plan& plan = plans[self];
    plan.problem = samples::problem(Collective::all_reduce, 2);
    plan.steps = Steps(self);
    plan.shape = {.units = 1, .scratch = 0, .rounds = rounds, .stages = {0}};
    for (std::uint32_t round = 0; round < rounds; ++round) {
      if (stages && round > 0) plan.shape.stages.push_back(round);
      plan.rounds.push_back(static_cast<std::uint32_t>(plan.steps.size()));
      for (const Message& message : messages) {
        const Operand other = message.flag ? flag(1 - self, 0) : lane(1 - self, 1);
        const Operand memory = self == 0 ? input(0) : output(0);
        if (self == 0 && message.sent == round) plan.steps.add({&memory, 1}, {&other, 1});
        if (self == 1 && message.received == round) plan.steps.add({&other, 1}, {&memory, 1});
      }
    }
    plan.rounds.push_back(static_cast<std::uint32_t>(plan.steps.size()));
  }
  return plans;
}

TEST(MessageRounds, AreCrossed_IfReceivedInLaterRounds) {
  for (const bool stages : {false, true}) {
    EXPECT_TRUE(messages_cross_rounds(plans_of({{0, 1}}, 2, stages), kOverlapping));
    EXPECT_FALSE(messages_cross_rounds(plans_of({{0, 1}, {1, 1}}, 2, stages), kOverlapping));
    EXPECT_FALSE(messages_cross_rounds(plans_of({{1, 0}}, 2, stages), kOverlapping));
  }
}

TEST(MessageRounds, AreCrossed_IfSlotsAreWrittenInLaterRounds) {
  const auto crosses = [](std::vector<Message> messages, bool stages, std::uint32_t skew, std::uint32_t slots) {
    return messages_cross_rounds(plans_of(std::move(messages), 3, stages),
                                 {.chunks = 8, .skew = skew, .order = StageOrder::earliest_first, .slots = slots});
  };
  // Three messages are sent before the first is received, or two if the second is sent in the round of its receipt.
  const std::vector<Message> first = {{0, 2}, {0, 2}, {1, 2}}, later = {{0, 1}, {1, 2}};
  EXPECT_TRUE(crosses(first, false, 0, 3));
  EXPECT_FALSE(crosses(first, false, 0, 2));
  EXPECT_TRUE(crosses(later, false, 0, 2));
  EXPECT_FALSE(crosses(later, false, 0, 1));
  // In the order of the loop, the second message of a chunk is sent after the first ones of two later chunks.
  const auto with_slots = [](std::uint32_t slots) {
    return messages_cross_rounds(plans_of({{0, 1}, {2, 3}}, 4, true),
                                 {.chunks = 8, .skew = 1, .order = StageOrder::earliest_first, .slots = slots});
  };
  EXPECT_TRUE(with_slots(3));
  EXPECT_FALSE(with_slots(2));
  // Received two iterations later, after the rank has sent that iteration's message.
  EXPECT_TRUE(crosses({{0, 2}}, true, 1, 3));
  EXPECT_FALSE(crosses({{0, 2}}, true, 1, 2));
  EXPECT_TRUE(crosses({{0, 2}}, true, 0, 1));
}

TEST(MessageRounds, AreCrossed_IfFlagsAreAwaitedInTheirRounds) {
  const std::vector<Message> message = {{0, 1}};
  const auto with = [&](Message signal) {
    return plans_of({message[0], {signal.sent, signal.received, true}}, 2, false);
  };
  EXPECT_TRUE(messages_cross_rounds(with({1, 1}), kOverlapping));
  EXPECT_FALSE(messages_cross_rounds(with({1, 0}), kOverlapping));
  EXPECT_TRUE(messages_cross_rounds(plans_of({{1, 0, true}}, 2, false), kOverlapping)) << "no messages";
}

TEST(MessageRounds, AreCrossed_OnlyWithEarliestStageFirst) {
  Loop loop = kOverlapping;
  loop.order = StageOrder::latest_first;
  EXPECT_FALSE(messages_cross_rounds(plans_of({{0, 1}}, 2, true), loop));
  loop.skew = 0;
  EXPECT_TRUE(messages_cross_rounds(plans_of({{0, 1}}, 2, true), loop));
}

}  // namespace
}  // namespace tutti::test
