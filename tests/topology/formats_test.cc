#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/topology/fill.h"
#include "src/topology/paths.h"
#include "src/topology/presets.h"
#include "tests/topology/read_file.h"

namespace tutti::test {
namespace {

std::string failure(Result<Topology> result) {
  EXPECT_FALSE(result.ok());
  return result.ok() ? std::string() : std::move(result).status().message();
}

std::string nccl(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"3\">\n" + inside + "\n</cpu>\n</system>\n";
}

// Returns a file of host "a" with these nodes and links.
std::string json(const std::string& nodes, const std::string& links = "") {
  return "{\"format\": \"tutti topology\", \"version\": 1, \"hosts\": [{\"name\": \"a\", \"nodes\": [" + nodes +
         "]}], \"links\": [" + links + "]}";
}

NodeId id_of(const Topology& topology, std::string_view name) {
  const Node* node = topology.find(name);
  EXPECT_NE(node, nullptr) << name;
  return node == nullptr ? 0 : static_cast<NodeId>(node - topology.nodes.data());
}

double gbytes(const Topology& topology, std::string_view from, std::string_view to) {
  return find_path(topology, id_of(topology, from), id_of(topology, to)).gbytes_per_s;
}

PathKind kind(const Topology& topology, std::string_view from, std::string_view to) {
  return find_path(topology, id_of(topology, from), id_of(topology, to)).kind;
}

TEST(NcclXml, ReadsFullDump) {
  const Topology h100 = topology_of("nccl-ibm-gx3d-8xH100.xml");
  EXPECT_EQ(h100.all(NodeKind::gpu).size(), 8u);
  EXPECT_EQ(h100.all(NodeKind::nvswitch).size(), 4u);
  EXPECT_EQ(h100.all(NodeKind::nic).size(), 8u);
  const Node& gpu = *h100.find("gpu0");
  EXPECT_EQ(gpu.sm, 90u);
  EXPECT_EQ(gpu.bus_id, "0000:a4:00.0");
  EXPECT_EQ(gpu.model, "H100-SXM5-80GB");
  EXPECT_TRUE(gpu.gpudirect);
  EXPECT_EQ(h100.find("numa0")->cpus, "0-79");
  EXPECT_DOUBLE_EQ(h100.find("mlx5_7")->gbytes_per_s, 25);
  EXPECT_DOUBLE_EQ(gbytes(h100, "gpu0", "gpu7"), 450);  // 18 links, over four switches.
  EXPECT_EQ(kind(h100, "gpu0", "mlx5_7"), PathKind::pix);
  EXPECT_EQ(kind(h100, "gpu0", "mlx5_6"), PathKind::phb);
  EXPECT_EQ(kind(h100, "gpu0", "mlx5_0"), PathKind::sys);
}

TEST(NcclXml, IgnoresSlowVirtualBridge) {
  const Topology h100 = topology_of("nccl-ibm-gx3d-8xH100.xml");
  EXPECT_NEAR(gbytes(h100, "gpu0", "mlx5_7"), 63, 0.1);  // Not 0.25 GB/s of 2.5 GT/s x1.
  EXPECT_NE(h100.notes[0].find("pci 0000:a1:00.0"), std::string::npos);
}

TEST(NcclXml, ReadsDevicesWithoutBridges) {
  Topology p4d = topology_of("nccl-aws-p4d-8xA100.xml");
  EXPECT_EQ(p4d.all(NodeKind::gpu).size(), 8u);
  EXPECT_EQ(p4d.all(NodeKind::nic).size(), 4u);
  EXPECT_EQ(kind(p4d, "gpu0", "gpu7"), PathKind::sys);  // The file has no NVLinks.
  fill_in(p4d);
  EXPECT_DOUBLE_EQ(gbytes(p4d, "gpu0", "gpu7"), 300);
  EXPECT_DOUBLE_EQ(p4d.find("nic 0000:10:1b.0")->gbytes_per_s, 12.5);
  EXPECT_EQ(kind(p4d, "gpu1", "nic 0000:10:1b.0"), PathKind::pix);
}

TEST(NcclXml, NumbersGpusLikeDrivers) {
  const Topology ndv4 = topology_of("nccl-azure-ndv4-8xA100.xml");
  EXPECT_EQ(ndv4.find("gpu0")->bus_id, "0001:00:00.0");  // Not the first in the file.
  EXPECT_EQ(ndv4.find("gpu7")->bus_id, "000e:00:00.0");
}

TEST(FillIn, DoesNotGuessGpuModels) {
  Topology ndv4 = topology_of("nccl-azure-ndv4-8xA100.xml");
  fill_in(ndv4);
  EXPECT_EQ(ndv4.all(NodeKind::nvswitch).size(), 0u);
  EXPECT_DOUBLE_EQ(ndv4.find("nic 0101:00:00.0")->gbytes_per_s, 25);  // HDR, the rate of generation 4 x16.
  Topology topology = topology_of("nccl-azure-ndv4-8xA100.xml");
  ASSERT_TRUE(set_gpu_model(topology, "A100-SXM4-40GB").ok());
  fill_in(topology);
  EXPECT_DOUBLE_EQ(gbytes(topology, "gpu0", "gpu7"), 300);
  EXPECT_NE(set_gpu_model(topology, "A101").message().find("A100-SXM4-40GB"), std::string::npos);
}

TEST(NcclXml, OmitsLinksToSelf) {
  const Topology ncv4 = topology_of("nccl-azure-ncv4-4xA100-pcie.xml");
  EXPECT_EQ(kind(ncv4, "gpu0", "gpu1"), PathKind::sys);
  EXPECT_EQ(ncv4.notes.size(), 4u);
  EXPECT_DOUBLE_EQ(ncv4.find("eth0")->gbytes_per_s, 12.5);
}

TEST(HwlocXml, ReadsDgx2) {
  Topology dgx2 = topology_of("hwloc-dgx2-16xV100.xml");
  EXPECT_EQ(dgx2.all(NodeKind::gpu).size(), 16u);
  EXPECT_EQ(dgx2.all(NodeKind::nvswitch).size(), 12u);
  EXPECT_EQ(dgx2.find("numa1")->cpus, "24-25");
  EXPECT_DOUBLE_EQ(gbytes(dgx2, "gpu0", "gpu1"), 150);
  EXPECT_EQ(kind(dgx2, "gpu0", "gpu8"), PathKind::sys);
  fill_in(dgx2);  // No driver reports the links between the boards.
  EXPECT_EQ(kind(dgx2, "gpu0", "gpu8"), PathKind::nvlink);
  EXPECT_DOUBLE_EQ(gbytes(dgx2, "gpu0", "gpu8"), 150);
}

TEST(FillIn, JoinsBoardsOfEachDgx2) {
  const Topology dgx2 = topology_of("hwloc-dgx2-16xV100.xml");
  Topology both = merged(dgx2, dgx2);
  fill_in(both);
  std::map<std::uint32_t, int> trunks;
  for (const Link& link : both.links)
    if (both.nodes[link.a].kind == NodeKind::nvswitch) ++trunks[both.nodes[link.a].host];
  EXPECT_EQ(trunks, (std::map<std::uint32_t, int>{{0, 6}, {1, 6}}));
}

// Earlier duplicates have no effect.
TEST(Json, UsesLastOfDuplicateKeys) {
  const std::string text =
      "{\"format\": \"x\", \"version\": 1, \"format\": \"tutti topology\", \"hosts\": [{\"name\": \"a\", \"nodes\": "
      "[{\"kind\": \"gpu\", \"name\": \"z\", \"name\": \"y\"}, {\"name\": \"b\", \"kind\": \"numa\"}]}]}";
  const Topology topology = read_topology(text, "f").value();
  ASSERT_EQ(topology.nodes.size(), 2u);
  EXPECT_EQ(topology.nodes[0].name, "y");
  EXPECT_EQ(topology.nodes[1].name, "b");
}

TEST(Json, RoundTrips) {
  for (const char* file : kFiles) {
    Topology topology = topology_of(file);
    fill_in(topology);
    Result<std::string> text = write_topology_json(topology);
    ASSERT_TRUE(text.ok());
    Result<Topology> again = read_topology(text.value(), "again");
    ASSERT_TRUE(again.ok()) << std::move(again).status().message();
    EXPECT_TRUE(again.value() == topology) << file;
  }
}

TEST(NcclXml, RoundTripsSupportedProperties) {
  std::map<std::string, Topology> topologies;
  for (const char* file : kFiles) topologies[file] = topology_of(file);
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-b200"}) topologies[name] = preset(name).value();
  for (const auto& [file, topology] : topologies) {
    Result<std::string> text = write_nccl_xml(topology);
    ASSERT_TRUE(text.ok());
    Result<Topology> read = read_topology(text.value(), "again");
    ASSERT_TRUE(read.ok()) << std::move(read).status().message() << "\n" << text.value();
    const Topology again = std::move(read).value();
    for (const NodeId gpu : topology.all(NodeKind::gpu)) {
      const Node& node = topology.nodes[gpu];
      ASSERT_NE(again.find(node.name), nullptr) << file;
      EXPECT_EQ(again.find(node.name)->sm, node.sm);
      for (const NodeId other : topology.all(NodeKind::gpu)) {
        const std::string& name = topology.nodes[other].name;
        if (other == gpu) continue;
        EXPECT_NEAR(gbytes(again, node.name, name), gbytes(topology, node.name, name), 0.01)
            << file << node.name << name;
        EXPECT_EQ(kind(again, node.name, name), kind(topology, node.name, name));
      }
    }
    EXPECT_EQ(again.all(NodeKind::nic).size(), topology.all(NodeKind::nic).size()) << file;
  }
}

TEST(NcclXml, NamesLineOfError) {
  const std::pair<const char*, const char*> wrong[] = {
      {"<pci class=\"0x030200\"/>", "f:3: <pci>: has no busid"},
      {"<pci busid=\"1:0\" class=\"blue\"/>", "f:3: <pci>: class=\"blue\" is not an integer"},
      {"\n<pci busid=\"1:0\" link_speed=\"fast\"/>",
       "f:4: <pci>: link_speed=\"fast\" is not a speed such as \"16 GT/s\""},
      {"<pci busid=\"1:0\" link_width=\"99\"/>", "f:3: <pci>: link_width=\"99\" is more than 32"},
      {"<pci busid=\"1:0\" class=\"0x030200\"/>\n<pci busid=\"1:0\" class=\"0x030200\"/>",
       "f:4: <pci>: duplicate busid"},
      {"<nic><net name=\"a\" speed=\"-3\"/></nic>", "f:3: <net>: speed=\"-3\" is not a number >= 0"},
      {"<nic><net name=\"a\" speed=\"1e300\"/></nic>", "is more than 1000000000"},
      {"<nic><net speed=\"1\"/></nic>", "f:3: <net>: has no name"},
      {"<pci busid=\"1:0\" class=\"0x030200\"><gpu><nvlink target=\"2:0\" count=\"1\" "
       "tclass=\"0x030200\"/></gpu></pci>",
       "f:3: <nvlink>: leads to busid=\"0000:2:0.0\", but no GPU has this busid"},
      {"<pci busid=\"1:0\"", "f:"},
  };
  for (const auto& [inside, words] : wrong) {
    EXPECT_NE(failure(read_topology(nccl(inside), "f")).find(words), std::string::npos) << inside;
  }
  EXPECT_NE(failure(read_topology("<system version=\"2\"/>", "f")).find("version=\"2\" is more than 1"),
            std::string::npos);
  EXPECT_NE(failure(read_topology("<system/>", "f")).find("no <cpu>"), std::string::npos);
  EXPECT_NE(failure(read_topology("<html/>", "f")).find("f:1: <html>: neither"), std::string::npos);
  for (const char* text : {"hello", "[]"})
    EXPECT_NE(failure(read_topology(text, "f")).find("f: neither a JSON object nor XML; pass"), std::string::npos);
  EXPECT_EQ(failure(read_topology(" \n", "f")), "f: the file is empty");
}

TEST(NcclXml, LimitsNesting) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<pci busid=\"" + std::to_string(i) + ":0\" class=\"0x060400\">";
  for (int i = 0; i < 100'000; ++i) deep += "</pci>";
  EXPECT_NE(failure(read_topology(nccl(deep), "f")).find("nested too deeply"), std::string::npos);
  EXPECT_NE(failure(read_topology("{\"hosts\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}", "f"))
                .find("64"),
            std::string::npos);
}

TEST(Json, ReportsErrors) {
  const std::string head = "{\"format\": \"tutti topology\", \"version\": 1, ";
  const std::pair<std::string, const char*> wrong[] = {
      {"{", "not JSON"},
      {"{}", "the format is not"},
      {head + "\"color\": 1}", "has the unknown key \"color\""},
      {head + "\"hosts\": [{}]}", "a host has no name"},
      {head + "\"hosts\": [{\"name\": \"a\", \"nodes\": [{\"name\": \"x\", \"kind\": \"tree\"}]}]}",
       "'tree' is not a kind of node"},
      {head + "\"hosts\": [{\"name\": \"a\", \"nodes\": [{\"name\": \"x\", \"kind\": \"gpu\", \"sm\": -1}]}]}",
       "\"sm\" of node 'x'"},
      {head + "\"hosts\": [{\"name\": \"a\", \"nodes\": [{\"name\": \"x\", \"kind\": \"gpu\", \"sm\": 1.5}]}]}",
       "is not an integer"},
      {head + "\"hosts\": [{\"name\": \"a\"}, {\"name\": \"a\"}]}", "duplicate host 'a'"},
      {head + "\"links\": [{\"from\": \"a/x\", \"to\": \"a/y\"}]}", "a link leads from 'a/x'"},
  };
  for (const auto& [text, words] : wrong)
    EXPECT_NE(failure(read_topology(text, "f")).find(words), std::string::npos) << text;
}

TEST(NcclXml, AcceptsProcessorsWithoutDomain) {
  const std::string text = "<system version=\"1\"><cpu numaid=\"-1\"/><cpu numaid=\"0xffff\"/></system>";
  const Topology topology = read_topology(text, "f").value();
  EXPECT_EQ(topology.all(NodeKind::numa).size(), 2u);
  EXPECT_EQ(topology.notes.size(), 2u);
}

// PCI links that form a circle, lead to a node from two parents, or descend without end.
TEST(Json, RejectsGraphsThatAreNotTrees) {
  const auto file = [](const std::string& links, int switches) {
    std::string nodes = "{\"kind\": \"numa\", \"name\": \"n\"}";
    for (int i = 0; i < switches; ++i)
      nodes += ", {\"kind\": \"pci_switch\", \"name\": \"s" + std::to_string(i) + "\"}";
    return json(nodes, links);
  };
  const auto link = [](const std::string& from, const std::string& to) {
    return "{\"from\": \"a/" + from + "\", \"to\": \"a/" + to + "\", \"kind\": \"pci\", \"gbytes_per_s\": 1}";
  };
  std::string chain = link("n", "s0");
  for (int i = 1; i < 70; ++i) chain += ", " + link("s" + std::to_string(i - 1), "s" + std::to_string(i));
  EXPECT_TRUE(read_topology(file(link("n", "s0") + ", " + link("s0", "s1"), 2), "f").ok());
  EXPECT_NE(failure(read_topology(file(link("s0", "s1") + ", " + link("s1", "s0"), 2), "f")).find("is below itself"),
            std::string::npos);
  EXPECT_NE(failure(read_topology(file(link("n", "s0") + ", " + link("s1", "s0"), 2), "f")).find("two links"),
            std::string::npos);
  EXPECT_NE(failure(read_topology(file(chain, 70), "f")).find("below more than 64"), std::string::npos);
}

TEST(Json, RejectsUnrealisticRates) {
  const auto file = [](const std::string& rate) {
    return json("{\"kind\": \"numa\", \"name\": \"n\"}, {\"kind\": \"pci_switch\", \"name\": \"s\"}",
                "{\"from\": \"a/n\", \"to\": \"a/s\", \"kind\": \"pci\", " + rate + "}");
  };
  EXPECT_TRUE(read_topology(file("\"gbytes_per_s\": 1e-6"), "f").ok());
  for (const char* rate : {"0", "1e-308", "1e300"})
    EXPECT_NE(failure(read_topology(file("\"gbytes_per_s\": " + std::string(rate)), "f")).find("1e-6 to 1e9 GB/s"),
              std::string::npos)
        << rate;
  EXPECT_NE(failure(read_topology(file("\"gbytes_per_s\": 1, \"latency_us\": 1e300"), "f")).find("0 to 1e9 us"),
            std::string::npos);
}

// For a port, 0 means an unknown rate.
TEST(Formats, RejectUnrealisticPortRates) {
  const auto ours = [](const std::string& rate) {
    return json("{\"kind\": \"nic\", \"name\": \"n\", \"gbytes_per_s\": " + rate + "}");
  };
  const auto xml = [](const std::string& megabits) {
    return nccl("<pci busid=\"1:0\" class=\"0x020000\"><nic><net name=\"n\" speed=\"" + megabits + "\"/></nic></pci>");
  };
  for (const char* rate : {"0", "1e-6", "50", "1e9"}) EXPECT_TRUE(read_topology(ours(rate), "f").ok()) << rate;
  EXPECT_TRUE(read_topology(xml("0"), "f").ok());
  for (const std::string& file : {ours("1e-320"), ours("9e-7"), ours("1.1e9"), ours("1e300"), xml("1e-300")}) {
    const std::string why = failure(read_topology(file, "f"));
    EXPECT_TRUE(why.starts_with("f: 'n' of host")) << why;
    EXPECT_NE(why.find("bandwidth out of range; valid: 0 (unknown), or 1e-6 to 1e9 GB/s"), std::string::npos) << why;
  }
}

TEST(Json, RejectsControlCharacters) {
  const std::string text = "{\"format\": \"tutti topology\", \"version\": 1, \"hosts\": [{\"name\": \"a\\u001b[2J\"}]}";
  EXPECT_NE(failure(read_topology(text, "f")).find("control characters"), std::string::npos);
}

// Invalid UTF-8 would break later output; line 1 precedes it.
TEST(Formats, RejectInvalidUtf8) {
  for (const char* bytes :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xef\xbf\xbf", "\x80"}) {
    const std::string json =
        "{\"format\": \"tutti topology\", \"version\": 1,\n\"hosts\": [{\"name\": \"a" + std::string(bytes) + "\"}]}";
    EXPECT_FALSE(read_topology(json, "f").ok()) << json;
    const std::string broken =
        failure(read_topology("<system version=\"1\">\n<cpu arch=\"" + std::string(bytes) + "\"/></system>", "f"));
    EXPECT_TRUE(broken.starts_with("f:2: ")) << broken;
    EXPECT_TRUE(failure(read_topology("<topology>\n<object name=\"" + std::string(bytes) + "\"/></topology>", "f"))
                    .starts_with("f:2: "));
  }
  EXPECT_FALSE(read_topology(nccl("<nic><net name=\"&#xD800;\"/></nic>"), "f").ok());
  EXPECT_TRUE(read_topology(nccl("<nic><net name=\"\xc3\xa4\xe7\xb6\xb2\xf0\x9f\x98\x80\"/></nic>"), "f").ok());
}

TEST(Formats, RejectInvalidPciAddresses) {
  for (const char* id : {"nan:", "inf", "-1:00:00.0", "0x1p3:00:00.0", "0000:a4:00.0.0", "123456789:a4:00.0",
                         "0000:+4:00.0", "0000: 4:00.0", "::.", "0000:a4:00.g"}) {
    const std::string pci = nccl("<pci busid=\"" + std::string(id) + "\" class=\"0x030200\"/>");
    EXPECT_NE(failure(read_topology(pci, "f")).find("f:3: <pci>: busid=\"" + std::string(id)), std::string::npos) << id;
    const std::string hwloc =
        "<topology><object type=\"Machine\"><object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" nodeset=\"0x1\"/>\n"
        "<object type=\"PCIDev\" pci_busid=\"" +
        std::string(id) + "\"/></object></topology>";
    EXPECT_NE(failure(read_topology(hwloc, "f")).find("f:2: <object>: pci_busid"), std::string::npos) << id;
    const std::string ours = json("{\"kind\": \"gpu\", \"name\": \"x\", \"bus_id\": \"" + std::string(id) + "\"}");
    EXPECT_NE(failure(read_topology(ours, "f")).find("bus id of node 'x'"), std::string::npos) << id;
  }
  const std::string hex = nccl("<pci busid=\"0000:a4:00.0\" class=\"0x030200\" link_speed=\"0x10 GT/s\"/>");
  EXPECT_NE(failure(read_topology(hex, "f")).find("link_speed"), std::string::npos);
}

// A topology that was filled in, written and read does not change when it is filled in again.
TEST(Json, IsStable_AfterFillInAndRoundTrip) {
  std::vector<Topology> all;
  for (const char* file : kFiles) all.push_back(topology_of(file));
  all.push_back(topology_of(kOddFile));
  for (const std::string_view name : {"dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72"})
    all.push_back(preset(name).value());
  std::string gpus;
  for (int i = 0; i < 8; ++i)
    gpus += "<pci busid=\"0000:0" + std::to_string(i) + ":00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x1\"/>";
  all.push_back(read_topology(nccl(gpus), "unknown").value());
  for (Topology& topology : all) {
    fill_in(topology);
    const std::string text = write_topology_json(topology).value();
    Topology again = read_topology(text, "again").value();
    fill_in(again);
    EXPECT_EQ(write_topology_json(again).value(), text);
  }
}

TEST(Merged, KeepsHostsSeparate) {
  const Topology one = topology_of("nccl-aws-p4d-8xA100.xml");
  const Topology both = merged(one, topology_of("nccl-azure-ndv4-8xA100.xml"));
  ASSERT_EQ(both.hosts.size(), 2u);
  EXPECT_TRUE(check(both).ok());
  EXPECT_EQ(both.all(NodeKind::gpu).size(), 16u);
  const auto gpus = both.all(NodeKind::gpu);
  EXPECT_EQ(find_path(both, gpus.front(), gpus.back()).kind, PathKind::none);
}

}  // namespace
}  // namespace tutti::test
