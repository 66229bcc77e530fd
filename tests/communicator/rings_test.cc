#include "src/communicator/planning/rings.h"

#include <gtest/gtest.h>

#include "tests/communicator/crossed_gpus.h"

namespace tutti {
namespace {

using Order = std::vector<Rank>;

// A ring has no first rank and may be gone round either way.
bool is_ring(Order order, const Order& wanted) {
  for (const bool reversed : {false, true}) {
    if (reversed) std::reverse(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order == wanted) return true;
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
  }
  return false;
}

TEST(RingsOfRanks, GoAlongNvLinks) {
  const Embedding embedding = ring_embedding(on_crossed_gpus({0, 0, 0, 0}));
  EXPECT_TRUE(is_ring(embedding.order, {0, 2, 1, 3})) << testing::PrintToString(embedding.order);
  EXPECT_TRUE(embedding.groups.empty());
}

TEST(RingsOfRanks, KeepHostsInOnePiece) {
  const Embedding embedding = ring_embedding(on_crossed_gpus({0, 1, 0, 1, 0, 1, 0, 1}));
  ASSERT_EQ(embedding.order.size(), 8u);
  EXPECT_EQ(embedding.groups, (std::vector<Order>{{4, 4}}));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(embedding.order[i] % 2, i / 4);
}

// Four of five, in another order: along the NVLinks of the GPUs that they are on.
TEST(RingsOfRanks, OfAPartAreThoseOfItsGpus) {
  const Hosts part = on_crossed_gpus({0, 0, 0, 0, 1}).of({3, 0, 1, 2});
  EXPECT_EQ(gpu_of(part.location(0)), bus_of(3));
  const Embedding embedding = ring_embedding(part);
  EXPECT_TRUE(is_ring(embedding.order, {0, 1, 3, 2})) << testing::PrintToString(embedding.order);
}

TEST(RingsOfRanks, AreAsNumberedWhereNothingIsKnown) {
  EXPECT_TRUE(ring_embedding(Hosts::together(4)).order.empty());
  Hosts hosts = on_crossed_gpus({0, 0, 0, 0});
  std::vector<Location> locations = hosts.locations();
  set_gpu(locations[2], "0000:ff:00.0");  // Hidden from who looked.
  hosts.place(locations);
  EXPECT_TRUE(ring_embedding(hosts).order.empty());
}

}  // namespace
}  // namespace tutti
