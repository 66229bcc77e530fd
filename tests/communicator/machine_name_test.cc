// Names of machines in TUTTI_TUNE_FILE. They differ wherever choices may differ, and are the same in each run of a job.
#include "src/communicator/autotuning/machine_name.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "src/base/own_cpus.h"
#include "src/communicator/control/mesh.h"
#include "src/tuner/tune_cache.h"
#include "tests/bootstrap/shared_unique_id.h"
#include "tests/communicator/crossed_gpus.h"

namespace tutti::test {
namespace {

CommunicatorOptions keeping() {
  CommunicatorOptions options;
  options.tune_file = "/tmp/tune";
  options.version = "0.1.0";
  options.timeout_ms = options.init_timeout_ms = 30'000;
  return options;
}

std::string named(const Hosts& hosts) { return machine_name(keeping(), hosts); }

// Returns the ranks of one machine: first_cpus[rank] is the first CPU on which the rank may run.
Hosts bound_to(const std::vector<std::uint32_t>& first_cpus, std::uint32_t own_cpus = 1) {
  std::vector<Hosts::MachineShare> shares;
  for (const std::uint32_t first : first_cpus) shares.push_back({0, 8, 0, own_cpus, first, 0});
  return {std::vector<Rank>(first_cpus.size(), 0), shares};
}

Hosts network_choice(double gbytes_per_s, double message_us, const std::string& transport = "tcp") {
  Hosts hosts = Hosts::one_rank_per_host(2);
  hosts.set_transport(transport);
  hosts.set_network(NetworkFigures{message_us, gbytes_per_s, gbytes_per_s, 1});
  return hosts;
}

TEST(MachineName, DistinguishesSharedFromSeparateCpus) {
  EXPECT_NE(named(bound_to({3, 3})).find(", hosts 1x2, 2 ranks on 1 CPU of "), std::string::npos)
      << named(bound_to({3, 3}));
  EXPECT_NE(named(bound_to({3, 4})).find(", hosts 1x2, 1 rank on 1 CPU of "), std::string::npos)
      << named(bound_to({3, 4}));
  EXPECT_NE(named(bound_to({0, 0}, 2)).find("2 ranks on 2 CPUs of "), std::string::npos);
  EXPECT_NE(named(bound_to({0, 0, 1})).find("1 rank on 1 CPU and 2 ranks on 1 CPU of "), std::string::npos);
}

// A scheduler may assign other CPUs to the next run. The name must not change.
TEST(MachineName, IsTheSame_OnOtherCpusWithEqualSharing) {
  EXPECT_EQ(named(bound_to({1, 1})), named(bound_to({7, 7})));
  EXPECT_EQ(named(bound_to({0, 1})), named(bound_to({5, 2})));
  EXPECT_EQ(named(bound_to({0, 1, 1})), named(bound_to({5, 2, 2})));
}

TEST(MachineName, DistinguishesWhichRanksShareCpus) {
  const std::vector<Hosts> all = {bound_to({0, 0, 1, 1}),
                                  bound_to({0, 1, 0, 1}),
                                  bound_to({0, 0, 0, 1}),
                                  bound_to({0, 1, 1, 1}),
                                  Hosts(std::vector<Rank>{0, 0, 1, 1}),
                                  Hosts(std::vector<Rank>{0, 1, 0, 1}),
                                  Hosts(std::vector<Rank>{0, 0, 0, 1}),
                                  Hosts(std::vector<Rank>{0, 1, 1, 1}),
                                  Hosts::one_host(4),
                                  bound_to({0, 0, 0, 0, 0, 0}, 2).of({0, 1, 2, 3})};
  std::set<std::string> names;
  for (const Hosts& hosts : all) {
    names.insert(named(hosts));
    EXPECT_EQ(named(hosts), named(hosts));
  }
  EXPECT_EQ(names.size(), all.size());
}

// Ranks outside of the sub-communicator use the same CPU, so they must count.
TEST(MachineName, CountsAllRanksOnCpus_InSubCommunicator) {
  EXPECT_NE(named(bound_to({0, 0, 0, 0}).of({0, 1})).find("4 ranks on 1 CPU"), std::string::npos);
}

// Measurements vary between runs. Links within a factor of two must have the same name, and links of another magnitude
// another name.
TEST(MachineName, GroupsLinksIntoWideClasses) {
  const std::string usual = named(network_choice(0.125, 20));
  EXPECT_NE(usual.find(", tcp, about 1 Gbit/s, under 100 us"), std::string::npos) << usual;
  for (int step = -2; step <= 2; ++step) {
    const double factor = std::exp2(step / 2.0);
    for (const double of_a_kind : {0.00125, 0.0125, 0.125, 1.25, 12.5})
      EXPECT_EQ(named(network_choice(of_a_kind * factor, 20 * factor)), named(network_choice(of_a_kind, 20)));
  }
  std::set<std::string> names;
  for (const double gbytes_per_s : {0.00125, 0.0125, 0.125, 1.25, 12.5})
    names.insert(named(network_choice(gbytes_per_s, 20)));
  for (const double us : {300, 3'000, 30'000}) names.insert(named(network_choice(0.125, us)));
  EXPECT_EQ(names.size(), 8U);
}

TEST(MachineName, NamesTransportBetweenHosts) {
  EXPECT_NE(named(network_choice(1.25, 20, "verbs")).find(", verbs, about 10 Gbit/s"), std::string::npos);
  EXPECT_NE(named(network_choice(1.25, 20, "tcp encrypted")).find(", tcp encrypted, about"), std::string::npos);
  EXPECT_TRUE(named(Hosts::one_rank_per_host(2)).ends_with(", tcp, links not measured"));
  EXPECT_TRUE(named(Hosts::one_host(2)).ends_with(", shm"));
  EXPECT_TRUE(named(network_choice(1.25, 20, "verbs").of({0})).ends_with(", shm")) << "a part within one host";
  EXPECT_NE(named(network_choice(1.25, 20, "verbs").of({1, 0})).find(", verbs, about 10 Gbit/s"), std::string::npos);
}

TEST(MachineName, NamesNumaDomainsOfRanks) {
  const auto in_domains = [](const std::vector<std::uint32_t>& domains) {
    Hosts hosts = Hosts::one_host(static_cast<Rank>(domains.size()));
    std::vector<Location> locations(domains.size());
    for (std::size_t rank = 0; rank < domains.size(); ++rank) locations[rank].domain = domains[rank];
    hosts.place(std::move(locations));
    return named(hosts);
  };
  EXPECT_NE(in_domains({0, 0, 1, 1}).find(", NUMA domains 2x2, shm"), std::string::npos) << in_domains({0, 0, 1, 1});
  EXPECT_EQ(in_domains({0, 0, 1, 1}), in_domains({1, 1, 0, 0})) << "of the same kind";
  EXPECT_NE(in_domains({0, 0, 1, 1}), in_domains({0, 1, 0, 1}));
  EXPECT_EQ(in_domains({0, 0, 0, 0}), named(Hosts::one_host(4)));
}

TEST(MachineName, FitsIntoTuneFile_ForAnyHosts) {
  std::vector<Rank> host_of;
  std::vector<Hosts::MachineShare> shares;
  for (Rank host = 0; host < 60; ++host) {
    for (Rank i = 0; i <= host; ++i) {
      host_of.push_back(host);
      shares.push_back({host, 1000, 0, 100 + i % 7, i, 0});
    }
  }
  const std::string name = named(Hosts(host_of, shares));
  EXPECT_TRUE(check_machine_name(name).ok()) << name;
  EXPECT_NE(name, named(Hosts(std::vector<Rank>(host_of.rbegin(), host_of.rend()), shares)));
}

TEST(MachineName, DescribesLinksOfDevices) {
  const Hosts crossed = on_crossed_gpus({0, 0, 0, 0});
  const std::string words = links_in_words(crossed);
  EXPECT_NE(words.find("4 NV 25 GB/s and 2 "), std::string::npos) << words;
  EXPECT_EQ(links_in_words(on_crossed_gpus({0, 0, 0, 0})), words);
  EXPECT_NE(links_in_words(crossed.of({0, 2, 1, 3})), words) << "ranks along the links";
  EXPECT_EQ(links_in_words(crossed.of({0, 2})), "NV 25 GB/s");
  EXPECT_NE(links_in_words(crossed.of({0, 1})), links_in_words(crossed.of({0, 2})));
  EXPECT_EQ(links_in_words(crossed.of({0, 1})), links_in_words(crossed.of({3, 2})));
  EXPECT_EQ(links_in_words(Hosts::one_host(2)), "unknown");
}

TEST(MachineName, IsParsedAsWritten) {
  const auto host = parse_machine_name(named(network_choice(0.125, 20)));
  ASSERT_TRUE(host.has_value());
  EXPECT_FALSE(host->on_devices);
  EXPECT_EQ(host->hosts, "2x1");
  EXPECT_EQ(host->transport, "tcp");
  EXPECT_EQ(parse_machine_name("0.1.0, hosts 1x4, 1 rank on 1 CPU of A on B, NUMA domains 2x2, shm")->transport, "shm");
  const auto device = parse_machine_name(
      "0.1.0, 4 ranks on NVIDIA A100 each, 32 thread blocks, links 4 NV 25 GB/s and 2 PHB, laid out as 01");
  ASSERT_TRUE(device.has_value());
  EXPECT_TRUE(device->on_devices);
  EXPECT_EQ(device->ranks, 4U);
  EXPECT_EQ(device->links, "4 NV 25 GB/s and 2 PHB, laid out as 01");
}

TEST(MachineName, MatchesNoMachine_WhenFieldIsMissing) {
  for (const char* name :
       {"0.1.0, hosts 1x2, 1 CPUs of AMD EPYC, no transport asked for", "another", "",
        "0.1.0, hosts 1x2, 2 CPUs of AMD EPYC, tcp", "0.1.0, 4 ranks on NVIDIA H200 each, 32 thread blocks",
        "0.1.0, 4 ranks on NVIDIA H200 each, 32 thread blocks in turns, by memory of the host"})
    EXPECT_FALSE(parse_machine_name(name).has_value()) << name;
}

// Returns the name that all ranks see if they join on these CPUs, cpus[rank].
std::string joined(const std::vector<std::uint32_t>& cpus) {
  const Meeting meeting;
  Processes processes;
  for (Rank rank = 0; rank < cpus.size(); ++rank) {
    processes.start([&, rank]() -> std::string {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpus[rank], &one);
      ::sched_setaffinity(0, sizeof one, &one);
      auto made = Communicator::create(meeting.id(), rank, static_cast<Rank>(cpus.size()), keeping());
      if (!made.ok()) return std::move(made).status().message();
      std::string name = named(made.value()->mesh().hosts());
      const Status left = made.value()->leave();
      return left.ok() ? name : left.message();
    });
  }
  const std::vector<std::string> names = processes.reports();
  for (const std::string& name : names) EXPECT_EQ(name, names.front()) << "all ranks see the same";
  return names.front();
}

TEST(MachineName, UsesCpusOfJoiningRanks) {
  const std::vector<std::uint32_t> cpus = own_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one processor is shared by all";
  const std::string shared = joined({cpus[0], cpus[0]}), apart = joined({cpus[0], cpus[1]});
  EXPECT_NE(shared.find(", 2 ranks on 1 CPU of "), std::string::npos) << shared;
  EXPECT_NE(apart.find(", 1 rank on 1 CPU of "), std::string::npos) << apart;
  EXPECT_EQ(joined({cpus[1], cpus[1]}), shared);
  EXPECT_EQ(joined({cpus[1], cpus[0]}), apart);
}

}  // namespace
}  // namespace tutti::test
