// Discovery on a sysfs that the test makes, with a library that stands in for NVML, and on this machine.
#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/topology/discover/discover.h"
#include "src/topology/discover/file.h"
#include "src/topology/discover/here.h"
#include "src/topology/formats.h"
#include "src/topology/presets.h"
#include "src/topology/ways.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// A machine of two sockets. Behind a switch of the first: a GPU and a card with two ports of InfiniBand, of which one
// is down; beside them a GPU; at the second socket a GPU and an Ethernet card.
class RecordedMachine : public testing::Test {
 protected:
  RecordedMachine() : root_(fs::path(testing::TempDir()) / ("sysfs." + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    for (int node = 0; node < 2; ++node) {
      const std::string first = std::to_string(node * 4), last = std::to_string(node * 4 + 3);
      file("devices/system/node/node" + std::to_string(node) + "/cpulist", first + "-" + last + "\n");
      for (int cpu = node * 4; cpu < node * 4 + 4; ++cpu) {
        const std::string cache = "devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/";
        file(cache + "index0/level", "1\n");
        file(cache + "index0/shared_cpu_list", std::to_string(cpu) + "\n");
        file(cache + "index3/level", "3\n");
        const int half = cpu / 2 * 2;
        file(cache + "index3/shared_cpu_list", std::to_string(half) + "-" + std::to_string(half + 1) + "\n");
      }
    }
    file("devices/system/node/node2/cpulist", "\n");  // Memory alone.
    file("proc/cpuinfo",
         "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Xeon\n\n");
    const std::string first = "devices/pci0000:3a/0000:3a:00.0", second = "devices/pci0000:ae/0000:ae:00.0";
    pci(first, "0x060400", "0x8086", "0x347a", 0, "32.0 GT/s PCIe", 16);
    pci(first + "/0000:3b:00.0", "0x030200", "0x10de", "0x2330", 0, "32.0 GT/s PCIe", 16);
    pci(first + "/0000:3c:00.0", "0x020700", "0x15b3", "0x1021", 0, "32.0 GT/s PCIe", 16);
    pci("devices/pci0000:5d/0000:5d:00.0", "0x060400", "0x8086", "0x347a", 0, "32.0 GT/s PCIe", 16);
    pci("devices/pci0000:5d/0000:5d:00.0/0000:5e:00.0", "0x030200", "0x10de", "0x2330", 0, "32.0 GT/s PCIe", 16);
    pci(second, "0x060400", "0x8086", "0x347a", 1, "16.0 GT/s PCIe", 8);
    pci(second + "/0000:af:00.0", "0x030200", "0x10de", "0x2fff", 1, "16.0 GT/s PCIe", 8);
    pci(second + "/0000:b0:00.0", "0x020000", "0x8086", "0x1592", 1, "16.0 GT/s PCIe", 8);
    pci(second + "/0000:b1:00.0", "0x010802", "0x144d", "0xa80a", 1, "16.0 GT/s PCIe", 4);  // A disk.
    port(first + "/0000:3c:00.0", "mlx5_0", "1", "4: ACTIVE", "400 Gb/sec (4X NDR)");
    port(first + "/0000:3c:00.0", "mlx5_0", "2", "1: DOWN", "10 Gb/sec (4X SDR)");
    interface(first + "/0000:3c:00.0/net/ib0", "up", "400000");
    interface(second + "/0000:b0:00.0/net/ens5", "up", "100000");
    interface("devices/virtual/net/lo", "unknown", "");
    sources_ = {.sys = root_, .proc = root_ / "proc", .hwloc = "", .nvml = "/nonexistent/libnvidia-ml.so.1"};
  }
  ~RecordedMachine() override { fs::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void link(const std::string& from, const std::string& to) {
    fs::create_directories((root_ / from).parent_path());
    fs::create_symlink(root_ / to, root_ / from);
  }
  void pci(const std::string& folder, const char* pci_class, const char* vendor, const char* device, int numa,
           const std::string& speed, int width) {
    file(folder + "/class", std::string(pci_class) + "\n");
    file(folder + "/vendor", std::string(vendor) + "\n");
    file(folder + "/device", std::string(device) + "\n");
    file(folder + "/numa_node", std::to_string(numa) + "\n");
    file(folder + "/max_link_speed", speed + "\n");
    file(folder + "/current_link_width", std::to_string(width) + "\n");
    link("bus/pci/devices/" + folder.substr(folder.rfind('/') + 1), folder);
  }
  void port(const std::string& folder, const std::string& name, const std::string& number, const char* state,
            const char* rate) {
    const std::string device = folder + "/infiniband/" + name;
    file(device + "/ports/" + number + "/state", std::string(state) + "\n");
    file(device + "/ports/" + number + "/rate", std::string(rate) + "\n");
    if (number == "1") link("class/infiniband/" + name, device);
  }
  void interface(const std::string& folder, const char* state, const std::string& megabits) {
    file(folder + "/operstate", std::string(state) + "\n");
    file(folder + "/speed", megabits + "\n");
    link("class/net/" + folder.substr(folder.rfind('/') + 1), folder);
  }

  Topology look() {
    Result<Discovery> found = discover(sources_);
    EXPECT_TRUE(found.ok()) << std::move(found).status().message();
    if (!found.ok()) return {};
    reports_ = found.value().sources;
    return found.value().topology;
  }

  fs::path root_;
  Sources sources_;
  std::vector<SourceReport> reports_;
};

NodeId id_of(const Topology& topology, std::string_view name) {
  const Node* node = topology.find(name);
  EXPECT_NE(node, nullptr) << name;
  return node == nullptr ? 0 : static_cast<NodeId>(node - topology.nodes.data());
}

Way between(const Topology& topology, std::string_view from, std::string_view to) {
  return way(topology, id_of(topology, from), id_of(topology, to));
}

TEST_F(RecordedMachine, HasItsProcessorsAndCaches) {
  const Topology found = look();
  EXPECT_EQ(found.all(NodeKind::numa).size(), 2u);  // Not the one without processors.
  EXPECT_EQ(found.all(NodeKind::cpu).size(), 4u);
  EXPECT_EQ(found.find("cpu1")->cpus, "2-3");
  EXPECT_EQ(found.find("numa1")->cpus, "4-7");
  EXPECT_EQ(found.find("numa0")->model, "GenuineIntel family 6 model 143");
  EXPECT_DOUBLE_EQ(between(found, "numa0", "numa1").gbytes_per_s, 22);
}

TEST_F(RecordedMachine, HasItsDevicesWhereTheyHang) {
  const Topology found = look();
  EXPECT_EQ(found.all(NodeKind::gpu).size(), 3u);
  EXPECT_EQ(found.find("gpu0")->model, "H100-SXM5-80GB");
  EXPECT_EQ(between(found, "gpu0", "mlx5_0").kind, WayKind::pix);
  EXPECT_NEAR(between(found, "gpu0", "mlx5_0").gbytes_per_s, 63, 0.1);
  EXPECT_EQ(between(found, "gpu1", "mlx5_0").kind, WayKind::phb);
  EXPECT_EQ(between(found, "gpu2", "mlx5_0").kind, WayKind::sys);
  EXPECT_NEAR(between(found, "gpu2", "ens5").gbytes_per_s, 15.75, 0.01);
  EXPECT_EQ(found.find("nic 0000:b1:00.0"), nullptr);  // The disk.
}

TEST_F(RecordedMachine, HasPortsOfRdmaOnceAndInterfacesOfOtherCards) {
  const Topology found = look();
  EXPECT_EQ(found.all(NodeKind::nic).size(), 3u);
  EXPECT_DOUBLE_EQ(found.find("mlx5_0")->gbytes_per_s, 50);
  EXPECT_FALSE(found.find("mlx5_0")->down);
  ASSERT_NE(found.find("mlx5_0:2"), nullptr);
  EXPECT_TRUE(found.find("mlx5_0:2")->down);
  EXPECT_EQ(between(found, "gpu0", "mlx5_0:2").kind, WayKind::pix);
  EXPECT_EQ(found.find("ib0"), nullptr);
  EXPECT_DOUBLE_EQ(found.find("ens5")->gbytes_per_s, 12.5);
}

TEST_F(RecordedMachine, LearnsOfNvLinksFromTheDriver) {
  sources_.nvml = TUTTI_STAND_IN_NVML;
  const Topology found = look();
  EXPECT_EQ(found.find("gpu0")->model, "H100-SXM5-80GB");
  EXPECT_EQ(found.find("gpu2")->model, "Stand-in 2");  // Its number is in no list.
  EXPECT_EQ(between(found, "gpu0", "gpu1").kind, WayKind::nvlink);
  EXPECT_DOUBLE_EQ(between(found, "gpu0", "gpu1").gbytes_per_s, 100);  // Four, told by both ends.
  EXPECT_EQ(between(found, "gpu0", "gpu2").kind, WayKind::sys);
  ASSERT_EQ(found.all(NodeKind::nvswitch).size(), 1u);
  EXPECT_EQ(found.nodes[found.all(NodeKind::nvswitch)[0]].bus_id, "0000:c1:00.0");
}

// As in a container that was given two of three GPUs.
TEST_F(RecordedMachine, SetsAsideGpusThatTheDriverDoesNotShow) {
  pci("devices/pci0000:1a/0000:1b:00.0", "0x030200", "0x10de", "0x2330", 0, "32.0 GT/s PCIe", 16);
  sources_.nvml = TUTTI_STAND_IN_NVML;
  const Topology found = look();
  EXPECT_EQ(found.all(NodeKind::gpu).size(), 4u);
  EXPECT_EQ(found.find("gpu0")->bus_id, "0000:3b:00.0");
  ASSERT_NE(found.find("gpu 0000:1b:00.0"), nullptr);
  EXPECT_EQ(found.notes.size(), 1u);
}

// They come and go, in containers.
TEST_F(RecordedMachine, IsSeenWithoutInterfacesThatLeadNowhere) {
  link("class/net/gone0", "devices/virtual/net/gone0");
  EXPECT_EQ(look().all(NodeKind::nic).size(), 3u);
}

TEST_F(RecordedMachine, SaysWhatIsMissing) {
  look();
  ASSERT_FALSE(reports_.empty());
  EXPECT_EQ(reports_.back().source, "NVML");
  EXPECT_FALSE(reports_.back().found);
  EXPECT_NE(reports_.back().words.find("/nonexistent/libnvidia-ml.so.1"), std::string::npos);
  sources_.sys = root_ / "nothing";
  Result<Discovery> blind = discover(sources_);
  ASSERT_FALSE(blind.ok());
  EXPECT_NE(std::move(blind).status().message().find("nothing/devices/system/cpu/online"), std::string::npos);
}

TEST_F(RecordedMachine, IsUnchangedByAWayThroughFiles) {
  const Topology found = look();
  Result<std::string> json = write_topology_json(found);
  if (!json.ok()) GTEST_SKIP() << std::move(json).status().message();
  EXPECT_TRUE(read_topology(json.value(), "json").value() == found);
}

TEST(ThisMachine, HasItsProcessors) {
  Result<Discovery> found = discover();
  ASSERT_TRUE(found.ok()) << std::move(found).status().message();
  EXPECT_FALSE(found.value().topology.all(NodeKind::numa).empty());
}

// Two programs that look at the same files see the same.
TEST(ThisMachine, IsTheSameForHwlocAndSysfs) {
  Result<Discovery> by_hwloc = discover();
  Result<Discovery> by_sysfs = discover({.hwloc = ""});
  ASSERT_TRUE(by_hwloc.ok() && by_sysfs.ok());
  const SourceReport& hwloc = by_hwloc.value().sources.front();
  if (!hwloc.found) GTEST_SKIP() << hwloc.words;
  const Topology &one = by_hwloc.value().topology, &other = by_sysfs.value().topology;
  for (const NodeKind kind : {NodeKind::numa, NodeKind::gpu, NodeKind::nic}) {
    ASSERT_EQ(one.all(kind).size(), other.all(kind).size()) << name(kind);
    for (std::size_t i = 0; i < one.all(kind).size(); ++i) {
      EXPECT_EQ(one.nodes[one.all(kind)[i]].name, other.nodes[other.all(kind)[i]].name);
      EXPECT_EQ(one.nodes[one.all(kind)[i]].cpus, other.nodes[other.all(kind)[i]].cpus);
    }
  }
}

TEST_F(RecordedMachine, TellsWhereOneIs) {
  EXPECT_EQ(domain_of_cpus({0}, sources_), 0u);
  const Topology topology = look();
  EXPECT_EQ(domain_of_cpus({4, 7}, sources_), 1u);
  EXPECT_EQ(domain_of_cpus({4, 7}, topology), 1u);
  for (const auto& cpus : {std::vector<std::uint32_t>{3, 4}, {}, {9999}}) {
    EXPECT_EQ(domain_of_cpus(cpus, sources_), std::nullopt);
    EXPECT_EQ(domain_of_cpus(cpus, topology), std::nullopt);
  }
}

TEST_F(RecordedMachine, TellsWhereAGpuIs) {
  const DevicePlace near = place_of_device("0000:3b:00.0", sources_), far = place_of_device("0000:af:00.0", sources_);
  EXPECT_TRUE(near.found && far.found);
  EXPECT_EQ(near.domain, 0u);
  EXPECT_EQ(far.domain, 1u);
  EXPECT_EQ(near.port, "mlx5_0");
  EXPECT_EQ(far.port, "mlx5_0");  // There is no nearer one,
  port("devices/pci0000:ae/0000:ae:00.0/0000:b0:00.0", "mlx5_1", "1", "4: ACTIVE", "100 Gb/sec (4X EDR)");
  EXPECT_EQ(place_of_device("0000:af:00.0", sources_).port, "mlx5_1");  // and now there is.
  EXPECT_EQ(place_of_device("0000:3b:00.0", sources_).port, "mlx5_0");
  EXPECT_FALSE(place_of_device("0000:99:00.0", sources_).found);
  EXPECT_FALSE(place_of_device("../../etc", sources_).found);
}

TEST(TopologyFile, HasTheHostThatIsNamed) {
  Topology both = merged(preset("dgx-a100").value(), preset("dgx-h100").value());
  const Topology one = only_host(both, "dgx-h100", "a file").value();
  EXPECT_TRUE(check(one).ok());
  EXPECT_EQ(one.nodes.size(), preset("dgx-h100").value().nodes.size());
  EXPECT_EQ(one.links, preset("dgx-h100").value().links);
  EXPECT_EQ(only_host(one, "another", "a file").value(), one);
  EXPECT_EQ(std::move(only_host(both, "another", "a file")).status().message(),
            "a file has 2 hosts, and none is named another, as this one is");
}

}  // namespace
}  // namespace tutti
