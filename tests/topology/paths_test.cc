#include "src/topology/paths.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tutti::test {
namespace {

class TopologyPath : public testing::Test {
 protected:
  TopologyPath() { topology_.hosts = {"host"}; }

  NodeId node(NodeKind kind, const std::string& name) {
    Node made;
    made.kind = kind;
    made.name = name;
    return topology_.add(std::move(made));
  }
  void link(NodeId a, NodeId b, LinkKind kind, double gbytes_per_s, double latency_us = 1) {
    topology_.connect({a, b, kind, gbytes_per_s, latency_us, 1});
  }

  Topology topology_;
};

TEST_F(TopologyPath, DoesNotLeadThroughGpu) {
  const NodeId processor = node(NodeKind::numa, "numa0");
  const NodeId a = node(NodeKind::gpu, "a"), b = node(NodeKind::gpu, "b"), c = node(NodeKind::gpu, "c");
  for (const NodeId gpu : {a, b, c}) link(processor, gpu, LinkKind::pci, 16);
  link(a, b, LinkKind::nvlink, 100);
  link(b, c, LinkKind::nvlink, 100);
  EXPECT_EQ(find_path(topology_, a, b).kind, PathKind::nvlink);
  EXPECT_EQ(find_path(topology_, a, c).kind, PathKind::phb);
  EXPECT_DOUBLE_EQ(find_path(topology_, a, c).gbytes_per_s, 16);
}

TEST_F(TopologyPath, IsAsWideAsAllNvLinksTogether) {
  const NodeId from = node(NodeKind::gpu, "from"), to = node(NodeKind::gpu, "to");
  const NodeId a = node(NodeKind::nvswitch, "a"), b = node(NodeKind::nvswitch, "b");
  const NodeId c = node(NodeKind::nvswitch, "c"), d = node(NodeKind::nvswitch, "d");
  const NodeId e = node(NodeKind::nvswitch, "e"), f = node(NodeKind::nvswitch, "f");
  // The shortest path, over a and d, blocks two others: b e d and a c f.
  const std::pair<NodeId, NodeId> links[] = {{from, a}, {a, d}, {d, to}, {from, b}, {b, e},
                                             {e, d},    {a, c}, {c, f},  {f, to}};
  for (const auto& [one, other] : links) link(one, other, LinkKind::nvlink, 10);
  EXPECT_DOUBLE_EQ(find_path(topology_, from, to).gbytes_per_s, 20);
  EXPECT_DOUBLE_EQ(find_path(topology_, to, from).gbytes_per_s, 20);
  EXPECT_DOUBLE_EQ(find_path(topology_, from, to).latency_us, 3);  // Latency of the shortest path.
}

// The path lists the share of each link, in its direction.
TEST_F(TopologyPath, ReportsRatesOfItsLinks) {
  const NodeId from = node(NodeKind::gpu, "from"), to = node(NodeKind::gpu, "to");
  const NodeId a = node(NodeKind::nvswitch, "a"), b = node(NodeKind::nvswitch, "b");
  link(from, a, LinkKind::nvlink, 100);
  link(b, from, LinkKind::nvlink, 50);
  link(to, a, LinkKind::nvlink, 60);
  link(b, to, LinkKind::nvlink, 50);
  const NodePath found = find_path(topology_, from, to);
  EXPECT_DOUBLE_EQ(found.gbytes_per_s, 110);
  ASSERT_EQ(found.loads.size(), 4u);
  const bool forth[] = {true, false, false, true};
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found.loads[i].link, i);
    EXPECT_EQ(found.loads[i].forth, forth[i]) << i;
    EXPECT_DOUBLE_EQ(found.loads[i].part, i % 2 == 0 ? 60.0 / 110 : 50.0 / 110) << i;
  }
}

TEST_F(TopologyPath, PrefersWidthOverLatency) {
  const NodeId a = node(NodeKind::numa, "a"), b = node(NodeKind::numa, "b"), c = node(NodeKind::numa, "c");
  link(a, c, LinkKind::smp, 10);
  link(a, b, LinkKind::smp, 40);
  link(b, c, LinkKind::smp, 30);
  const NodePath found = find_path(topology_, a, c);
  EXPECT_DOUBLE_EQ(found.gbytes_per_s, 30);
  EXPECT_DOUBLE_EQ(found.latency_us, 2);
  EXPECT_EQ(found.nodes, (std::vector<NodeId>{a, b, c}));
}

TEST_F(TopologyPath, HasLeastLatency_AmongWidest) {
  const NodeId a = node(NodeKind::numa, "a"), b = node(NodeKind::pci_switch, "b"), c = node(NodeKind::pci_switch, "c");
  const NodeId d = node(NodeKind::nic, "d");
  link(a, b, LinkKind::pci, 16, 3);
  link(b, d, LinkKind::pci, 16, 3);
  link(a, c, LinkKind::pci, 16, 1);
  link(c, d, LinkKind::pci, 16, 1);
  EXPECT_DOUBLE_EQ(find_path(topology_, a, d).latency_us, 2);
  EXPECT_EQ(find_path(topology_, a, a).kind, PathKind::same);
  EXPECT_EQ(find_path(topology_, a, node(NodeKind::nic, "apart")).kind, PathKind::none);
}

// A path of different width leads through each processor in between. A search for each width would take too long.
TEST_F(TopologyPath, IsFoundInFewSteps_AmongManyPaths) {
  const NodeId from = node(NodeKind::gpu, "from"), to = node(NodeKind::gpu, "to");
  for (int i = 1; i <= 400; ++i) {
    const NodeId between = node(NodeKind::numa, std::to_string(i));
    link(from, between, LinkKind::smp, i, i);
    link(between, to, LinkKind::smp, i, i);
  }
  const NodePath found = find_path(topology_, from, to);
  EXPECT_DOUBLE_EQ(found.gbytes_per_s, 400);
  EXPECT_DOUBLE_EQ(found.latency_us, 800);
  EXPECT_LE(found.steps, 10 * topology_.links.size());
}

TEST_F(TopologyPath, OverNvLinksIsFoundInFewSteps_AmongManyPaths) {
  const NodeId from = node(NodeKind::gpu, "from"), to = node(NodeKind::gpu, "to");
  for (int i = 1; i <= 2000; ++i) {
    const NodeId between = node(NodeKind::nvswitch, std::to_string(i));
    link(from, between, LinkKind::nvlink, i);
    link(between, to, LinkKind::nvlink, i);
  }
  const NodePath found = find_path(topology_, from, to);
  EXPECT_EQ(found.kind, PathKind::nvlink);
  EXPECT_LE(found.steps, 300 * topology_.links.size());
}

// ways() reuses results between destinations, and must equal a search for each.
TEST_F(TopologyPath, ToSeveralEqualsPathToEach) {
  std::mt19937 random(7);  // Printed on failure.
  const NodeKind kinds[] = {NodeKind::numa, NodeKind::pci_switch, NodeKind::gpu, NodeKind::gpu, NodeKind::nvswitch};
  std::vector<NodeId> nodes;
  for (int i = 0; i < 40; ++i) nodes.push_back(node(kinds[i % 5], std::to_string(i)));
  for (int i = 0; i < 120; ++i) {
    const NodeId a = random() % 40, b = random() % 40;
    const LinkKind kind = std::array{LinkKind::nvlink, LinkKind::smp, LinkKind::c2c}[random() % 3];
    if (a != b) link(a, b, kind, 1 + random() % 4, 1 + random() % 4);
  }
  for (const NodeId from : nodes) {
    const std::vector<NodePath> found = find_paths(topology_, from, nodes);
    ASSERT_EQ(found.size(), nodes.size());
    for (const NodeId to : nodes) {
      SCOPED_TRACE("seed 7, from " + std::to_string(from) + " to " + std::to_string(to));
      const NodePath alone = find_path(topology_, from, to);
      EXPECT_EQ(found[to].kind, alone.kind);
      EXPECT_EQ(found[to].gbytes_per_s, alone.gbytes_per_s);
      EXPECT_EQ(found[to].latency_us, alone.latency_us);
      EXPECT_EQ(found[to].nodes, alone.nodes);
      ASSERT_EQ(found[to].loads.size(), alone.loads.size());
      for (std::size_t i = 0; i < alone.loads.size(); ++i) {
        EXPECT_EQ(found[to].loads[i].link, alone.loads[i].link);
        EXPECT_EQ(found[to].loads[i].forth, alone.loads[i].forth);
        EXPECT_EQ(found[to].loads[i].part, alone.loads[i].part);
      }
    }
  }
}

// The cost in steps is bounded: a separate search for each destination would visit all other nodes again.
TEST_F(TopologyPath, ToManyCostsLittleMoreThanToOne) {
  const NodeId processor = node(NodeKind::numa, "numa0"), middle = node(NodeKind::nvswitch, "nvswitches");
  std::vector<NodeId> gpus;
  for (int i = 0; i < 1000; ++i) {
    gpus.push_back(node(NodeKind::gpu, std::to_string(i)));
    link(processor, gpus.back(), LinkKind::pci, 16);
    if (i % 2 == 0) link(gpus.back(), middle, LinkKind::nvlink, 100);
  }
  const std::vector<NodePath> found = find_paths(topology_, gpus[0], gpus);
  EXPECT_EQ(found[998].kind, PathKind::nvlink);
  EXPECT_EQ(found[999].kind, PathKind::phb);
  EXPECT_LE(found[998].steps, 10 * topology_.links.size());
  EXPECT_LE(found[999].steps, 10 * topology_.links.size());
}

}  // namespace
}  // namespace tutti::test
