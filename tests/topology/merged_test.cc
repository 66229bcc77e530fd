#include "src/topology/merged.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "src/topology/presets.h"
#include "tests/topology/switches.h"

namespace tutti::test {
namespace {

TEST(Merged, StoresIdenticalHostsOnce) {
  TopologyMerger merger;
  const Topology board = preset("dgx-h100").value();
  Topology other = board;
  other.nodes.back().down = true;
  for (std::uint32_t host = 0; host < 1024; ++host)
    merger.add("host" + std::to_string(host), host == 500 ? other : board);
  const MergedTopology merged = merger.take();
  EXPECT_EQ(merged.hosts(), 1024u);
  ASSERT_EQ(merged.kinds.size(), 2u);
  EXPECT_TRUE(merged.of(500).nodes.back().down);
  EXPECT_FALSE(merged.of(501).nodes.back().down);
  EXPECT_EQ(merged.names[500], "host500");
}

TEST(Merged, ExpandsHostByHost) {
  TopologyMerger merger;
  const Topology board = preset("dgx-a100").value();
  for (const char* name : {"a", "b"}) merger.add(name, board);
  const Topology all = expanded(merger.take());
  EXPECT_TRUE(check(all).ok()) << check(all).message();
  EXPECT_EQ(all.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(all.nodes.size(), 2 * board.nodes.size());
  EXPECT_EQ(all.links.size(), 2 * board.links.size());
}

TEST(Merged, ShowsOneHostOfEachKind_WhenTooMany) {
  TopologyMerger merger;
  const Topology board = preset("dgx-h100").value();
  const std::size_t hosts = kMaxNodes / board.nodes.size() + 1;
  for (std::size_t host = 0; host < hosts; ++host) merger.add("host" + std::to_string(host), board);
  const Topology all = expanded(merger.take());
  EXPECT_EQ(all.hosts, (std::vector<std::string>{"host0"}));
  EXPECT_EQ(all.notes.back(), "host0 stands for " + std::to_string(hosts) + " identical hosts");
}

TEST(Packed, RoundTrips) {
  for (const char* name : {"dgx-a100", "gb200-nvl72"}) {
    Topology topology = preset(name).value();
    topology.notes = {"a note", ""};
    topology.nodes[1].down = true;
    const Result<Topology> back = unpacked(packed(topology), "here");
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back.value(), topology);
  }
}

// The topology is small to send, but expensive to search.
TEST(Packed, IsRejected_WhenTooLarge) {
  Topology topology;
  topology.hosts = {""};
  for (std::uint32_t i = 0; i < kMaxNodesSent; ++i) {
    Node node;
    node.name = std::to_string(i);
    topology.add(node);
  }
  EXPECT_TRUE(fits_broadcast(topology));
  EXPECT_TRUE(unpacked(packed(topology), "rank 3").ok());
  Topology linked = topology;
  linked.links.assign(kMaxLinksSent + 1, {0, 1, LinkKind::smp, 1, 1, 1});
  Node node;
  node.name = "one more";
  topology.add(node);
  for (const Topology& large : {topology, linked}) {
    EXPECT_FALSE(fits_broadcast(large));
    const Status refused = unpacked(packed(large), "rank 3").status();
    EXPECT_NE(refused.message().find("rank 3: "), std::string::npos) << refused.message();
    EXPECT_NE(refused.message().find("at most 1024 and"), std::string::npos) << refused.message();
  }
}

// Rates are divisors and sort keys: an invalid number would break both.
TEST(Packed, IsRejected_WithInvalidPortRate) {
  Topology topology = preset("dgx-h100").value();
  const NodeId port = topology.all(NodeKind::nic)[3];
  topology.nodes[port].gbytes_per_s = 0;  // Unknown.
  EXPECT_TRUE(unpacked(packed(topology), "rank 3").ok());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double rate : {std::numeric_limits<double>::quiet_NaN(), -50.0, kInfinity, -kInfinity, 1e-320, 1e10}) {
    topology.nodes[port].gbytes_per_s = rate;
    const Status refused = unpacked(packed(topology), "rank 3").status();
    EXPECT_EQ(refused.code(), Code::invalid_argument) << rate;
    EXPECT_TRUE(refused.message().starts_with("rank 3: '" + topology.nodes[port].name + "'")) << refused.message();
  }
}

// Trees are traversed upward; a circle would never end.
TEST(Packed, IsRejected_WhenTreeHasACircle) {
  EXPECT_TRUE(unpacked(packed(chain_of_switches()), "rank 3").ok());
  const Status refused = unpacked(packed(ring_of_switches()), "rank 3").status();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_NE(refused.message().find("rank 3: "), std::string::npos) << refused.message();
}

// Any data of a peer is rejected, or gives a valid topology.
TEST(Packed, SurvivesRandomDamage) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string whole = packed(preset("dgx-a100").value());
  for (std::size_t size = 0; size < whole.size(); size += 1 + random() % 7) {
    const Status refused = unpacked(whole.substr(0, size), "rank 3").status();
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(refused.message().find("rank 3: "), 0u) << refused.message();
  }
  EXPECT_FALSE(unpacked(whole + "x", "rank 3").ok());
  for (int i = 0; i < 5'000; ++i) {
    std::string broken = whole;
    for (unsigned flips = random() % 4 + 1; flips > 0; --flips)
      broken[random() % broken.size()] = static_cast<char>(random());
    const Result<Topology> read = unpacked(broken, "rank 3");
    EXPECT_TRUE(!read.ok() || check(read.value()).ok());
  }
}

}  // namespace
}  // namespace tutti::test
