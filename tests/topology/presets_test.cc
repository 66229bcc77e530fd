#include "src/topology/presets.h"

#include <gtest/gtest.h>

#include <string>

#include "src/topology/paths.h"

namespace tutti::test {
namespace {

NodeId id_of(const Topology& topology, std::string_view name, std::uint32_t host = 0) {
  for (NodeId id = 0; id < topology.nodes.size(); ++id)
    if (topology.nodes[id].name == name && topology.nodes[id].host == host) return id;
  ADD_FAILURE() << name;
  return 0;
}

TEST(Presets, AreValid) {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72"}) {
    Result<Topology> topology = preset(name);
    ASSERT_TRUE(topology.ok()) << name;
    EXPECT_TRUE(check(topology.value()).ok()) << check(topology.value()).message();
    EXPECT_NE(presets().find(name), std::string::npos);
  }
}

// A GPU's NVLinks, each once, as the vendor adds them up (half of the stated sum of both directions).
TEST(Presets, MatchVendorBandwidthBetweenGpus) {
  const std::pair<const char*, double> stated[] = {
      {"dgx-a100", 300}, {"dgx-h100", 450}, {"dgx-h200", 450}, {"dgx-b200", 900}};
  for (const auto& [name, gbytes_per_s] : stated) {
    const Topology topology = preset(name).value();
    ASSERT_EQ(topology.all(NodeKind::gpu).size(), 8u);
    ASSERT_EQ(topology.all(NodeKind::nic).size(), 8u);
    EXPECT_DOUBLE_EQ(find_path(topology, id_of(topology, "gpu0"), id_of(topology, "gpu7")).gbytes_per_s, gbytes_per_s)
        << name;
    EXPECT_EQ(find_path(topology, id_of(topology, "gpu5"), id_of(topology, "mlx5_5")).kind, PathKind::pix) << name;
  }
}

TEST(Presets, RackJoinsItsHostsByNvLink) {
  const Topology rack = preset("gb200-nvl72").value();
  EXPECT_EQ(rack.hosts.size(), 18u);
  EXPECT_EQ(rack.all(NodeKind::gpu).size(), 72u);
  const NodePath across = find_path(rack, id_of(rack, "gpu0", 0), id_of(rack, "gpu3", 17));
  EXPECT_EQ(across.kind, PathKind::nvlink);
  EXPECT_DOUBLE_EQ(across.gbytes_per_s, 900);
  EXPECT_EQ(find_path(rack, id_of(rack, "gpu0", 5), id_of(rack, "numa0", 5)).kind, PathKind::c2c);
  EXPECT_DOUBLE_EQ(find_path(rack, id_of(rack, "gpu0", 5), id_of(rack, "numa0", 5)).gbytes_per_s, 225);
}

TEST(Presets, ListNames_WhenNameIsUnknown) {
  EXPECT_NE(std::move(preset("dgx-1"))
                .status()
                .message()
                .find("unknown vendor system 'dgx-1': must be one of dgx-a100, dgx-h100"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::test
