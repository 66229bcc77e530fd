// A machine described by files that emulate sysfs.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "src/topology/discover/discover.h"
#include "src/topology/paths.h"

namespace tutti::test {

// Fixture with a machine of two sockets. Socket 0 has a switch with a GPU and an InfiniBand card, which has two ports,
// one of them down; and another GPU. Socket 1 has a GPU and an Ethernet card.
class DiscoveryTest : public testing::Test {
 protected:
  DiscoveryTest() : root_(std::filesystem::path(testing::TempDir()) / ("sysfs." + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
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
    file("devices/system/node/node2/cpulist", "\n");  // A node with memory only.
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
  ~DiscoveryTest() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void link(const std::string& from, const std::string& to) {
    std::filesystem::create_directories((root_ / from).parent_path());
    std::filesystem::create_symlink(root_ / to, root_ / from);
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

  std::filesystem::path root_;
  Sources sources_;
  std::vector<SourceReport> reports_;
};

inline NodeId id_of(const Topology& topology, std::string_view name) {
  const Node* node = topology.find(name);
  EXPECT_NE(node, nullptr) << name;
  return node == nullptr ? 0 : static_cast<NodeId>(node - topology.nodes.data());
}

inline NodePath between(const Topology& topology, std::string_view from, std::string_view to) {
  return find_path(topology, id_of(topology, from), id_of(topology, to));
}

}  // namespace tutti::test
