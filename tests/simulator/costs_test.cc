#include "tools/simulator/costs.h"

#include <gtest/gtest.h>

#include <limits>

#include "src/model/gpu_kernel.h"
#include "src/topology/presets.h"
#include "tools/simulator/figures.h"

namespace tutti::simulator::test {
namespace {

TEST(Costs, LaunchOfManyDevicesDependsOnDevicesAndChannels) {
  Costs costs;
  costs.launch_us = 8;
  costs.launch_many_us = 10;
  costs.launch_graph_us = 2;
  costs.launch_device_us = 3;
  costs.launch_channel_us = 0.5;
  EXPECT_EQ(launch_us(costs, LaunchMode::eager_many, {.devices = 4, .channels = 2}), 10 + 4 * (3 + 2 * 0.5));
  EXPECT_EQ(launch_us(costs, LaunchMode::eager, {.devices = 4, .channels = 2}), 8);
  EXPECT_EQ(launch_us(costs, LaunchMode::graph, {.devices = 4, .channels = 2}), 2);
}

TEST(Costs, CanBeSetByName) {
  Costs costs;
  EXPECT_TRUE(set_figure(costs, "hop_us.network.LL", 7).ok());
  EXPECT_EQ(costs.hop_us[static_cast<std::size_t>(LinkClass::network)][static_cast<std::size_t>(Protocol::ll)], 7);
  EXPECT_TRUE(set_figure(costs, "efficiency.c2c", 0.5).ok());
  EXPECT_EQ(costs.efficiency[static_cast<std::size_t>(LinkKind::c2c)], 0.5);
  EXPECT_TRUE(set_figure(costs, "slices.LL128", 3).ok());
  EXPECT_EQ(costs.slices[static_cast<std::size_t>(Protocol::ll128)], 3U);
  EXPECT_TRUE(set_figure(costs, "launch_us.eager-many", 0).ok());
}

TEST(Costs, RejectInvalidValues) {
  Costs costs;
  for (const auto& [name, value] : {std::pair{"channel_gbytes_per_s.Simple", 0.0},
                                    {"chunk_bytes.LL", 0.0},
                                    {"base_us.Simple", -1.0},
                                    {"base_us.Simple", std::numeric_limits<double>::infinity()},
                                    {"base_us.Simple", std::numeric_limits<double>::quiet_NaN()},
                                    {"slots.Simple", 0.0},
                                    {"slots.Simple", 1.5},
                                    {"max_channels", 1e12}})
    EXPECT_FALSE(set_figure(costs, name, value).ok()) << name << " " << value;
  Status unknown = set_figure(costs, "hop_us.network", 1);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.message().find("hop_us.network.Simple"), std::string::npos) << unknown.message();
}

TEST(Figures, ExistForEveryPreset_AndGrowWithGenerations) {
  double min = 0;
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-b200"}) {
    const Topology topology = preset(name).value();
    const Costs costs = costs_of(topology, Kernels::nccl).value();
    double nvlinks = 0;
    for (const Link& link : topology.links) nvlinks += link.kind == LinkKind::nvlink ? link.gbytes_per_s : 0;
    const double carried = nvlinks / 8 * costs.efficiency[static_cast<std::size_t>(LinkKind::nvlink)];
    EXPECT_GT(carried, min) << name;
    min = carried;
  }
  EXPECT_EQ(costs_of(preset("gb200-nvl72").value(), Kernels::nccl).value().name,
            costs_of(preset("dgx-b200").value(), Kernels::nccl).value().name);
  EXPECT_EQ(costs_of(preset("dgx-h200").value(), Kernels::nccl).value().name, "H100");
  // Measurements on Alps (7.8 us) disprove that calls take longer to launch on every Grace processor.
  EXPECT_EQ(costs_of(preset("gb200-nvl72").value(), Kernels::nccl).value().launch_us,
            costs_of(preset("dgx-b200").value(), Kernels::nccl).value().launch_us);
}

TEST(Figures, DependOnKernels_ButNotThoseOfLinks) {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-b200"}) {
    const Topology topology = preset(name).value();
    const Costs nccl = costs_of(topology, Kernels::nccl).value(), tutti = costs_of(topology, Kernels::tutti).value();
    EXPECT_EQ(tutti.efficiency, nccl.efficiency) << name;
    EXPECT_EQ(tutti.hop_us, nccl.hop_us) << name;
    const GpuKernel& kernel = gpu_kernel();
    using ByProtocol = std::array<double, kProtocolCount>;
    EXPECT_EQ(tutti.step_us, (ByProtocol{kernel.step_us + kernel.instructions_us, 0, 0})) << name;
    EXPECT_EQ(tutti.received_us, (ByProtocol{0, kernel.ll_instructions_us, kernel.instructions_us})) << name;
    EXPECT_EQ(nccl.received_us, ByProtocol{}) << name;
    EXPECT_EQ(tutti.launch_us, nccl.launch_us) << name;
    Costs again = tutti;  // The tools set them again.
    set_gpu_kernel(again);
    EXPECT_EQ(again.hop_us, tutti.hop_us) << name;
    EXPECT_EQ(again.base_us, tutti.base_us) << name;
    EXPECT_NE(tutti.channel_gbytes_per_s, nccl.channel_gbytes_per_s) << name;
    EXPECT_EQ(tutti.base_us[0], gpu_kernel().start_us) << name;
    EXPECT_EQ(nccl.mapped_us, 0) << name;
    EXPECT_GT(tutti.mapped_us, 0) << name;
    EXPECT_EQ(tutti.encode_gbytes_per_s, nccl.encode_gbytes_per_s) << name << ": compression takes no time";
  }
  EXPECT_EQ(costs_of(Topology{}, Kernels::tutti).value().base_us, costs_of(Topology{}, Kernels::nccl).value().base_us);
}

}  // namespace
}  // namespace tutti::simulator::test
