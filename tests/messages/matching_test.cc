#include "src/messages/matching.h"

#include <gtest/gtest.h>

namespace tutti::test {
namespace {

RequestPointer receive_call(Rank peer, std::uint64_t tag) {
  return std::make_shared<MessageRequest>(MessageCall{MessageDirection::receive, peer, tag});
}

ArrivalPointer arrival_from(Rank source, std::uint64_t tag, std::uint64_t number) {
  auto arrival = std::make_shared<MessageArrival>();
  arrival->source = source;
  arrival->frame.kind = MessageFrameKind::announced;
  arrival->frame.tag = tag;
  arrival->frame.number = number;
  return arrival;
}

TEST(MessageMatching, TakesReceivesInOrderOfPosting) {
  MessageMatching matching;
  const auto of_any = receive_call(kAnyRank, 1), of_one = receive_call(2, 1), of_other = receive_call(3, 1);
  matching.add(of_one);
  matching.add(of_any);
  matching.add(of_other);
  EXPECT_EQ(matching.take_receive(2, 0), nullptr);
  EXPECT_EQ(matching.take_receive(3, 1), of_any);
  EXPECT_EQ(matching.take_receive(3, 1), of_other);
  EXPECT_EQ(matching.take_receive(3, 1), nullptr);
  EXPECT_EQ(matching.take_receive(2, 1), of_one);
}

TEST(MessageMatching, TakesArrivalsInOrder_OfRankOrOfAll) {
  MessageMatching matching;
  const auto first = arrival_from(1, 5, 1), second = arrival_from(2, 5, 2), third = arrival_from(1, 5, 3);
  for (const auto& arrival : {first, second, third}) matching.add(arrival);
  EXPECT_EQ(matching.find_arrival(2, 5), second.get());
  EXPECT_EQ(matching.take_arrival(2, 5), second);
  EXPECT_EQ(matching.find_arrival(2, 5), nullptr);
  EXPECT_EQ(matching.take_arrival(kAnyRank, 5), first);
  EXPECT_EQ(matching.take_arrival(1, 5), third);
}

TEST(MessageMatching, RemovesAnnouncedMessageOfOneRank) {
  MessageMatching matching;
  const auto kept = arrival_from(1, 5, 7);
  matching.add(kept);
  matching.add(arrival_from(2, 5, 7));
  matching.remove(2, 5, 7);
  EXPECT_EQ(matching.take_arrival(2, 5), nullptr);
  EXPECT_EQ(matching.take_arrival(1, 5), kept);
}

TEST(MessageMatching, TakesReceivesFromOneRankOnly_WhenRankLeaves) {
  MessageMatching matching;
  const auto of_any = receive_call(kAnyRank, 1), of_one = receive_call(2, 1), of_other = receive_call(2, 9);
  for (const auto& receive : {of_any, of_one, of_other}) matching.add(receive);
  EXPECT_EQ(matching.take_receives_from(2), (std::vector<RequestPointer>{of_one, of_other}));
  EXPECT_EQ(matching.clear(), std::vector<RequestPointer>{of_any});
}

}  // namespace
}  // namespace tutti::test
