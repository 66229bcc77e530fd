// Discovery with NVML, including NVML failures: with a fake library, on a fictitious machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/base/library.h"
#include "src/topology/formats.h"
#include "src/topology/tree.h"
#include "tests/topology/recorded_machine.h"

namespace tutti::test {
namespace {

class NvmlDiscovery : public DiscoveryTest {
 protected:
  // `words` configure the fake library; `without` names a function that it lacks.
  Topology look_with(const std::string& words, const std::string& without = "") {
    sources_.nvml = std::string(TUTTI_STAND_IN_NVML) + (without.empty() ? "" : "_without_" + without) + ".so";
    Result<Library> stand_in =
        Library::open(sources_.nvml);  // The library stays loaded and configured during discovery.
    void (*show_message)(const char*) = nullptr;
    if (!stand_in.ok() || !stand_in.value().find("stand_in_receives", show_message)) {
      ADD_FAILURE() << sources_.nvml;
      return {};
    }
    show_message(words.c_str());
    return look();
  }

  const SourceReport& report() const { return reports_.back(); }
};

std::vector<Link> c2c_of(const Topology& topology) {
  std::vector<Link> links = topology.links;
  std::erase_if(links, [](const Link& link) { return link.kind != LinkKind::c2c; });
  return links;
}

bool are_linked(const Topology& topology, std::string_view from, std::string_view to) {
  const NodeId a = id_of(topology, from), b = id_of(topology, to);
  return std::any_of(topology.links.begin(), topology.links.end(), [&](const Link& link) {
    return link.kind == LinkKind::nvlink && ((link.a == a && link.b == b) || (link.a == b && link.b == a));
  });
}

using Notes = std::vector<std::string>;

TEST_F(NvmlDiscovery, FindsNvLinks) {
  const Topology found = look_with("");
  EXPECT_EQ(found.find("gpu0")->model, "H100-SXM5-80GB");
  EXPECT_EQ(found.find("gpu2")->model, "Stand-in 2");  // Its device id is in no list.
  EXPECT_EQ(between(found, "gpu0", "gpu1").kind, PathKind::nvlink);
  EXPECT_DOUBLE_EQ(between(found, "gpu0", "gpu1").gbytes_per_s, 100);  // Four links, reported by both ends.
  EXPECT_EQ(between(found, "gpu0", "gpu2").kind, PathKind::sys);
  ASSERT_EQ(found.all(NodeKind::nvswitch).size(), 1u);
  EXPECT_EQ(found.nodes[found.all(NodeKind::nvswitch)[0]].bus_id, "0000:c1:00.0");
  EXPECT_EQ(report().words, "3 GPUs, 10 ends of NVLinks");
  EXPECT_EQ(found.notes, Notes());
}

TEST_F(NvmlDiscovery, FindsC2cOfNearestDomain) {
  const Topology found = look_with("c2c");
  const std::vector<Link> links = c2c_of(found);
  ASSERT_EQ(links.size(), 2u);  // C2C of the second GPU is disabled.
  EXPECT_EQ(links[0].a, id_of(found, "numa0"));
  EXPECT_EQ(links[0].b, id_of(found, "gpu0"));
  EXPECT_EQ(links[0].width, 9u);  // One of ten is down.
  EXPECT_NEAR(links[0].gbytes_per_s, 9 * 44.712, 1e-9);
  EXPECT_EQ(links[1].a, id_of(found, "numa1"));
  EXPECT_EQ(links[1].b, id_of(found, "gpu2"));
  EXPECT_EQ(links[1].width, 5u);
  EXPECT_NEAR(links[1].gbytes_per_s, 5 * 44.712, 1e-9);
  EXPECT_EQ(between(found, "gpu0", "numa0").kind, PathKind::c2c);
  EXPECT_EQ(report().words, "3 GPUs, 10 ends of NVLinks, 14 links of NVLink-C2C");
  EXPECT_EQ(found.notes, Notes());
}

TEST_F(NvmlDiscovery, FindsC2c_WithoutModeFunction) {
  const Topology found = look_with("c2c", "nvmlDeviceGetC2cModeInfoV");
  ASSERT_EQ(c2c_of(found).size(), 3u);  // Without it, disabled links are unknown.
  EXPECT_EQ(c2c_of(found)[1].width, 5u);
  EXPECT_TRUE(c2c_of(look_with("", "nvmlDeviceGetC2cModeInfoV")).empty());
}

TEST_F(NvmlDiscovery, FindsC2c_WithoutFieldFunction) {
  const Topology found = look_with("c2c", "nvmlDeviceGetFieldValues");
  ASSERT_EQ(c2c_of(found).size(), 2u);
  EXPECT_DOUBLE_EQ(c2c_of(found)[0].gbytes_per_s, 450);  // The published rate of Hopper.
  EXPECT_EQ(c2c_of(found)[0].width, 1u);
  const std::string of_each = "the driver does not report the rate of NVLink-C2C of ";
  EXPECT_EQ(found.notes, (Notes{of_each + "gpu0: assumed to be 450 GB/s per direction",
                                of_each + "gpu2: assumed to be 450 GB/s per direction"}));
  const Topology none = look_with("", "nvmlDeviceGetFieldValues");
  EXPECT_TRUE(c2c_of(none).empty());
  EXPECT_EQ(none.notes, Notes());
}

TEST_F(NvmlDiscovery, FindsC2c_WithoutRate) {
  const Topology found = look_with("c2c_rateless");
  ASSERT_EQ(c2c_of(found).size(), 2u);
  EXPECT_DOUBLE_EQ(c2c_of(found)[1].gbytes_per_s, 450);
  EXPECT_EQ(c2c_of(found)[1].width, 5u);
  EXPECT_EQ(found.notes.size(), 2u);
}

TEST_F(NvmlDiscovery, OmitsC2c_WhenAllLinksAreDown) {
  const Topology found = look_with("c2c_down");
  EXPECT_TRUE(c2c_of(found).empty());
  EXPECT_EQ(found.notes,
            (Notes{"gpu0 has NVLink-C2C, but no link is active", "gpu2 has NVLink-C2C, but no link is active"}));
}

TEST_F(NvmlDiscovery, C2cSurvivesRoundTripThroughFiles) {
  const Topology found = look_with("c2c");
  Result<std::string> xml = write_nccl_xml(found);
  if (!xml.ok()) GTEST_SKIP() << std::move(xml).status().message();
  const Topology again = read_topology(xml.value(), "xml").value();
  ASSERT_EQ(c2c_of(again).size(), 2u);
  EXPECT_EQ(again.nodes[c2c_of(again)[1].a].name, "numa1");
  EXPECT_NEAR(c2c_of(again)[1].gbytes_per_s, 5 * 44.712, 1e-9);
}

// Data of sysfs remain.
TEST_F(NvmlDiscovery, ContinuesWithoutNvml_WhenItFails) {
  const std::string library = std::string(TUTTI_STAND_IN_NVML) + "_without_nvmlDeviceGetNvLinkState.so";
  const struct {
    const char *words, *without;
    std::string why;
  } kCases[] = {
      {"init", "", "initialization failed: Driver Not Loaded"},
      {"count", "", "counting GPUs failed: Unknown Error"},
      {"", "nvmlDeviceGetNvLinkState", library + " has no nvmlDeviceGetNvLinkState; drivers 418 and later have it"},
  };
  for (const auto& [words, without, why] : kCases) {
    const Topology found = look_with(words, without);
    EXPECT_EQ(report().source, "NVML");
    EXPECT_FALSE(report().found) << why;
    EXPECT_EQ(report().words, why);
    ASSERT_EQ(found.all(NodeKind::gpu).size(), 3u) << why;
    EXPECT_EQ(found.find("gpu1")->bus_id, "0000:5e:00.0");
    EXPECT_EQ(between(found, "gpu0", "gpu1").kind, PathKind::phb);
  }
}

TEST_F(NvmlDiscovery, OmitsLostGpu) {
  const std::string aside = "gpu 0000:5e:00.0 is not available to this process through its driver";
  const std::pair<const char*, const char*> kCases[] = {
      {"handle1", "the driver counts gpu1 but does not return its handle: GPU is lost"},
      {"pci1", "the driver does not report where gpu1 is: GPU is lost"},
      {"garbage1", "the driver does not report where gpu1 is: its bus id is invalid"},
      {"same1", "the driver reports the bus id of gpu0 for gpu1, too"},
  };
  for (const auto& [words, why] : kCases) {
    const Topology found = look_with(words);
    EXPECT_EQ(found.notes, (Notes{why, aside}));
    EXPECT_EQ(report().words, "2 of 3 GPUs, 6 ends of NVLinks");
    EXPECT_EQ(found.find("gpu1"), nullptr) << words;
    EXPECT_EQ(found.find("gpu0")->bus_id, "0000:3b:00.0");
    EXPECT_EQ(found.find("gpu2")->bus_id, "0000:af:00.0");
    EXPECT_EQ(found.find("gpu2")->model, "Stand-in 2");
    EXPECT_TRUE(are_linked(found, "gpu0", "gpu 0000:5e:00.0"));  // Reported by the other end.
  }
}

TEST_F(NvmlDiscovery, NotesLostGpu_MissingInSysfs) {
  std::filesystem::remove(root_ / "bus/pci/devices/0000:5e:00.0");
  const Topology found = look_with("handle1");
  EXPECT_EQ(found.notes, (Notes{"the driver counts gpu1 but does not return its handle: GPU is lost"}));
  EXPECT_EQ(report().words, "2 of 3 GPUs, 2 ends of NVLinks");
  EXPECT_EQ(found.all(NodeKind::gpu).size(), 2u);
}

// The query of the first GPU fails, and the second GPU reports the link.
TEST_F(NvmlDiscovery, KeepsNvLinks_ReportedByOneEnd) {
  EXPECT_TRUE(are_linked(look_with("handle0"), "gpu1", "gpu 0000:3b:00.0"));
  const Topology silent = look_with("link0");
  EXPECT_DOUBLE_EQ(between(silent, "gpu0", "gpu1").gbytes_per_s, 100);
  EXPECT_EQ(silent.notes, (Notes{"the driver does not report all NVLinks of gpu0: GPU is lost"}));
  EXPECT_EQ(report().words, "3 GPUs, 4 ends of NVLinks");
}

TEST_F(NvmlDiscovery, NotesNvLinks_WithUnknownEnd) {
  const Topology found = look_with("end0");
  EXPECT_DOUBLE_EQ(between(found, "gpu0", "gpu1").gbytes_per_s,
                   75);  // Three of four links, as reported by the first GPU.
  EXPECT_EQ(found.notes, (Notes{"the driver does not report all NVLinks of gpu0: GPU is lost"}));
}

TEST_F(NvmlDiscovery, OmitsNvLinks_WithInvalidEnd) {
  const Topology found = look_with("nowhere0");
  EXPECT_TRUE(found.all(NodeKind::nvswitch).empty());
  EXPECT_DOUBLE_EQ(between(found, "gpu0", "gpu1").gbytes_per_s, 100);  // The other end reported the links.
  EXPECT_EQ(found.notes, (Notes{"the driver does not report where all NVLinks of gpu0 lead: a bus id is invalid"}));
}

TEST_F(NvmlDiscovery, NotesMissingProperties) {
  const Topology found = look_with("name0 name2 capability0 capability2");
  EXPECT_EQ(found.find("gpu0")->model, "H100-SXM5-80GB");  // The device id is listed, so its name is not queried.
  EXPECT_EQ(found.find("gpu0")->sm, 90u);
  EXPECT_EQ(found.find("gpu2")->model, "10de:2fff");
  EXPECT_EQ(found.find("gpu2")->sm, 0u);
  EXPECT_EQ(found.notes, (Notes{"the driver does not report the compute capability of gpu0: GPU is lost",
                                "the driver does not report the name of gpu2: GPU is lost",
                                "the driver does not report the compute capability of gpu2: GPU is lost"}));
  EXPECT_EQ(report().words, "3 GPUs, 10 ends of NVLinks");
}

// Models a container with three of four GPUs.
TEST_F(NvmlDiscovery, SetsAsideHiddenGpus) {
  pci("devices/pci0000:1a/0000:1b:00.0", "0x030200", "0x10de", "0x2330", 0, "32.0 GT/s PCIe", 16);
  const Topology found = look_with("");
  EXPECT_EQ(found.all(NodeKind::gpu).size(), 4u);
  EXPECT_EQ(found.find("gpu0")->bus_id, "0000:3b:00.0");
  ASSERT_NE(found.find("gpu 0000:1b:00.0"), nullptr);
  EXPECT_EQ(found.find("gpu 0000:1b:00.0")->index, kUnnumbered);
  EXPECT_EQ(found.notes.size(), 1u);
}

// A dump is a file that can be read again.
TEST_F(NvmlDiscovery, HiddenGpusHaveNoNumberInFiles) {
  pci("devices/pci0000:1a/0000:1b:00.0", "0x030200", "0x10de", "0x2330", 0, "32.0 GT/s PCIe", 16);
  const Topology found = look_with("");
  Result<std::string> xml = write_nccl_xml(found);
  if (!xml.ok()) GTEST_SKIP() << std::move(xml).status().message();
  Result<Topology> again = read_topology(xml.value(), "xml");
  ASSERT_TRUE(again.ok()) << std::move(again).status().message();
  ASSERT_EQ(again.value().all(NodeKind::gpu).size(), 4u);
  for (const char* name : {"gpu0", "gpu1", "gpu2"}) {
    ASSERT_NE(again.value().find(name), nullptr) << name;
    EXPECT_EQ(again.value().find(name)->bus_id, found.find(name)->bus_id);
  }
  ASSERT_NE(again.value().find("gpu3"), nullptr);  // After those that the driver numbers.
  EXPECT_EQ(again.value().find("gpu3")->bus_id, "0000:1b:00.0");
  EXPECT_TRUE(read_topology(write_topology_json(found).value(), "json").value() == found);
}

}  // namespace
}  // namespace tutti::test
