// Exchange of lanes: the owner offers a lane, and the peer maps it.
#include "src/communicator/membership/lane_connections.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/communicator/planning/lane_specs.h"

namespace tutti::test {
namespace {

struct Side {
  Side(Mesh made, const Board& board, Rank rank) : mesh(std::move(made)), lanes(mesh, regions, board, rank) {}
  Mesh mesh;
  PeerRegions regions;
  LaneConnections lanes;
};

struct Sides {
  Sides() {
    std::vector<Mesh> both = std::move(Mesh::within_process(Hosts::one_host(2))).value();
    for (Rank rank = 0; rank < 2; ++rank) sides.push_back(std::make_unique<Side>(std::move(both[rank]), board, rank));
  }
  LaneConnections& operator[](Rank rank) { return sides[rank]->lanes; }
  Board board = Board::create(2).value();
  std::vector<std::unique_ptr<Side>> sides;
};

bool is_ready(LaneConnections& lanes, const LaneSpec& spec) {
  const Result<bool> ready = lanes.ready(spec);
  return ready.ok() && ready.value();
}

TEST(LaneConnections, MapLaneAtOneAddress_InOneProcess) {
  Sides sides;
  const LaneSpec spec = message_spec(0, 1, 5);
  ASSERT_TRUE(sides[0].offer(spec).ok());  // No effect, since rank 1 owns the lane.
  EXPECT_FALSE(is_ready(sides[0], spec));
  ASSERT_TRUE(sides[1].offer(spec).ok());
  ASSERT_TRUE(is_ready(sides[0], spec) && is_ready(sides[1], spec));
  const LaneView writing = sides[0].end(spec, 0, 5, LaneEnd::writer)->view;
  const LaneView reading = sides[1].end(spec, 0, 5, LaneEnd::reader)->view;
  EXPECT_EQ(writing.slots, reading.slots);
  EXPECT_EQ(writing.words, reading.words);
}

TEST(LaneConnections, LetEachEndWakeOtherRank) {
  Sides sides;
  for (const LaneSpec& spec : {message_spec(0, 1, 5), flag_spec(1, 0, 6)}) {
    ASSERT_TRUE(sides[spec.reader].offer(spec).ok());
    ASSERT_TRUE(is_ready(sides[spec.writer], spec) && is_ready(sides[spec.reader], spec));
    const LaneState* writing = sides[spec.writer].end(spec, spec.writer, spec.tag, LaneEnd::writer);
    const LaneState* reading = sides[spec.reader].end(spec, spec.writer, spec.tag, LaneEnd::reader);
    EXPECT_EQ(writing->peer_asleep, sides.board.sleep_word(spec.reader));
    EXPECT_EQ(reading->peer_asleep, sides.board.sleep_word(spec.writer));
  }
}

TEST(LaneConnections, WakeRankThatAwaitsOffer) {
  Sides sides;
  *sides.board.sleep_word(0) = 1;
  ASSERT_TRUE(sides[1].offer(message_spec(0, 1, 5)).ok());
  EXPECT_EQ(*sides.board.sleep_word(0), 0U);
}

// Both ranks offer more lanes than a socket can buffer before either reads. Detects lost offers, and ranks that block
// each other.
TEST(LaneConnections, LoseNoOffer_WhenSocketIsFull) {
  constexpr std::uint16_t kLanes = 1000;
  Sides sides;
  std::vector<LaneSpec> awaited;
  for (std::uint16_t tag = 0; tag < kLanes; ++tag) {
    for (const Rank writer : {0, 1}) {
      awaited.push_back(flag_spec(writer, 1 - writer, tag));
      ASSERT_TRUE(sides[1 - writer].offer(awaited.back()).ok()) << "lane " << tag;
    }
  }
  for (int turn = 0; turn < kLanes && !awaited.empty(); ++turn) {
    std::erase_if(awaited, [&](const LaneSpec& spec) {
      const bool here = is_ready(sides[0], spec);
      return is_ready(sides[1], spec) && here;
    });
  }
  EXPECT_EQ(awaited.size(), 0U);
}

// The socket of the owner is full, so its offer is queued. The owner must not be ready, or it would wait for a writer
// that does not know the lane.
TEST(LaneConnections, AreNotReady_WhileOfferIsQueued) {
  Sides sides;
  while (std::move(sides.sides[1]->mesh.try_send(0, Frame{})).value()) {
  }
  const LaneSpec spec = message_spec(0, 1, 0);
  ASSERT_TRUE(sides[1].offer(spec).ok());
  EXPECT_FALSE(is_ready(sides[1], spec));
  while (std::move(sides.sides[0]->mesh.receive(1)).value()) {
  }
  EXPECT_TRUE(is_ready(sides[1], spec));
  EXPECT_TRUE(is_ready(sides[0], spec));
}

TEST(LaneConnections, RejectLaneBetweenOtherRanks) {
  Sides sides;
  Frame frame;
  const LaneSpec foreign = message_spec(2, 1, 0);  // Owned by rank 1, but not written by rank 0.
  frame.bytes = sizeof(LaneSpec) + sizeof(LaneAddress);
  std::memcpy(frame.payload.data(), &foreign, sizeof foreign);
  ASSERT_TRUE(sides.sides[1]->mesh.send(0, frame).ok());
  EXPECT_EQ(sides[0].collect(1).message(), "rank 1 offered a lane from rank 2 to rank 1");
}

TEST(LaneConnections, RejectLane_WithoutItsSegment) {
  Sides sides;
  Frame frame;
  const LaneSpec spec = message_spec(0, 1, 0);
  frame.bytes = sizeof(LaneSpec) + sizeof(LaneAddress);
  std::memcpy(frame.payload.data(), &spec, sizeof spec);
  ASSERT_TRUE(sides.sides[1]->mesh.send(0, frame).ok());
  EXPECT_EQ(sides[0].ready(spec).status().message(), "segment 0 of rank 1 is not mapped");
}

}  // namespace
}  // namespace tutti::test
