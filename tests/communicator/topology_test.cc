// Topology files that define where ranks are. Each rank is a process, since a process reads its environment once.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "src/base/own_cpus.h"
#include "src/communicator/communicator.h"
#include "src/communicator/control/mesh.h"
#include "src/topology/discover/file.h"
#include "tests/bootstrap/shared_unique_id.h"
#include "tests/communicator/cases.h"

namespace tutti::test {
namespace {

void bind_to(std::uint32_t cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

class TopologyFileOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    cpus_ = own_cpus();
    if (cpus_.size() < 2) GTEST_SKIP() << "one processor cannot be in two domains";
    std::filesystem::create_directories(folder_);
    Topology topology;
    topology.hosts = {"made up"};
    for (std::uint32_t i = 0; i < 2; ++i) {
      Node node;
      node.name = "numa" + std::to_string(i + 4);
      node.index = i + 4;
      node.cpus = std::to_string(cpus_[i]);
      topology.add(node);
    }
    topology.connect({0, 1, LinkKind::smp, 20, 0.5, 1});
    const Status written = write_topology_file(file_, topology);
    if (written.code() == Code::unsupported) GTEST_SKIP() << written.message();
    ASSERT_TRUE(written.ok()) << written.message();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs `body` on ranks that join with these variables, each bound to one of two CPUs. Returns the results or errors.
  std::vector<std::string> join(Rank ranks, const std::function<std::string(Communicator&)>& body) {
    const Meeting meeting;
    Processes processes;
    for (Rank rank = 0; rank < ranks; ++rank) {
      processes.start([&, rank]() -> std::string {
        ::setenv(variable_, file_.c_str(), 1);
        if (rank == 0) ::setenv("TUTTI_TOPO_DUMP_FILE", dump_.c_str(), 1);
        bind_to(cpus_[rank / 2 % 2]);
        CommunicatorOptions options;
        options.timeout_ms = options.init_timeout_ms = 30'000;
        auto created = Communicator::create(meeting.id(), rank, ranks, options);
        return created.ok() ? body(*created.value()) : std::move(created).status().message();
      });
    }
    return processes.reports();
  }

  const char* variable_ = "TUTTI_TOPO_FILE";
  std::vector<std::uint32_t> cpus_;  // Each in its own NUMA domain.
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("tutti-topology-" + std::to_string(::getpid()));
  std::string file_ = folder_ / "host.json", dump_ = folder_ / "dump.json";
};

TEST_F(TopologyFileOfRanks, DefinesNumaDomains) {
  const auto body = [](Communicator& communicator) -> std::string {
    std::string domains;
    for (const Location& location : communicator.mesh().hosts().locations())
      domains += std::to_string(location.domain) + " ";
    CommunicatorOptions options = communicator.options();
    options.algorithm = "hierarchical";
    options.update_agreement_hash();
    std::int64_t wrong = -3;
    const Problem problem = {.ranks = communicator.ranks(), .groups = {}};
    const Status status = run_case(communicator, {problem, 5000}, options, wrong);
    if (!status.ok()) return status.message();
    return domains + (wrong == -1 ? "right by " : "wrong by ") + communicator.last_run().algorithm;
  };
  for (const std::string& said : join(4, body)) EXPECT_EQ(said, "4 4 5 5 right by hierarchical");
}

// Rank 0 writes the merged topology to the dump file. It must equal the topology of the file.
TEST_F(TopologyFileOfRanks, IsWritten_AsUsed) {
  const auto body = [](Communicator& communicator) {
    const MergedTopology* merged = communicator.mesh().hosts().topology();
    return merged == nullptr ? std::string("nothing")
                             : std::to_string(merged->hosts()) + " " + merged->of(0).nodes[1].name;
  };
  for (const std::string& said : join(3, body)) EXPECT_EQ(said, "1 numa5");
  const Result<Topology> dumped = read_topology_file(dump_);
  ASSERT_TRUE(dumped.ok());
  const Topology given = read_topology_file(file_).value();
  EXPECT_EQ(dumped.value().nodes, given.nodes);
  EXPECT_EQ(dumped.value().links, given.links);
}

// A topology with host names would differ on each host, and each would have to be sent. Notes must not contain them.
TEST_F(TopologyFileOfRanks, IsSentWithoutHostNames) {
  Topology topology = read_topology_file(file_).value();
  for (int i = 0; i < 2; ++i) {
    Node gpu;
    gpu.kind = NodeKind::gpu;
    gpu.name = "gpu" + std::to_string(i);
    topology.connect({0, topology.add(gpu), LinkKind::pci, 16, 1, 16});
  }
  ASSERT_TRUE(write_topology_file(file_, topology).ok());
  const auto body = [](Communicator& communicator) {
    const Topology& reported = communicator.mesh().hosts().topology()->of(0);
    return reported.notes.empty() ? std::string("no notes") : reported.notes.front();
  };
  for (const std::string& said : join(2, body)) EXPECT_EQ(said, "2 GPUs of an unknown model: no NVLinks are assumed");
}

TEST_F(TopologyFileOfRanks, FailsCreation_WhenMissing) {
  file_ = folder_ / "nothing.json";
  for (const std::string& said : join(2, [](Communicator&) { return "joined"; }))
    EXPECT_NE(said.find("nothing.json: No such file"), std::string::npos) << said;
}

TEST_F(TopologyFileOfRanks, IsIgnored_WhenMissingAndNamedByNccl) {
  file_ = folder_ / "nothing.json";
  variable_ = "NCCL_TOPO_FILE";
  for (const std::string& said : join(2, [](Communicator&) { return "joined"; })) EXPECT_EQ(said, "joined");
}

}  // namespace
}  // namespace tutti::test
