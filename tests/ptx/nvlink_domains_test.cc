// NVLink domains of several emulated hosts, whose devices share memory by fabric handles.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/communicator/device/device_processes.h"
#include "tests/ptx/switch_calls.h"

namespace tutti::test {
namespace {

constexpr Rank kRanks = 4;

// Processes with a rank each, on different hosts and devices.
class HostsOfOneRank {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  // Starts a process per rank. `settings`: environment variables of all, and `of_last` of the last one.
  void start(const char* fabric, const DeviceProcessGroup::Work& work, const Settings& of_last = {},
             Rank ranks = kRanks) {
    CommunicatorOptions options;
    options.transport = "tcp";
    options.update_agreement_hash();
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto rig = [=] {
        ::setenv("TUTTI_PTX_DEVICES", std::to_string(ranks).c_str(), 1);
        ::setenv("TUTTI_PTX_FABRIC", fabric, 1);
        for (const auto& [name, value] : of_last)
          if (rank == ranks - 1) ::setenv(name.c_str(), value.c_str(), 1);
        cudaSetDevice(static_cast<int>(rank));
        return cuda_rig();
      };
      processes_.start(rig, rank, 1, ranks, work, options);
    }
  }
  void kill(Rank rank) { processes_.kill(rank); }
  std::string report(Rank rank) { return processes_.report(rank); }
  void expect_reports(const std::string& wanted) { processes_.expect_reports(wanted); }

 private:
  DeviceProcessGroup processes_;
};

// Returns "" if NVLinks connect all ranks.
std::string check_joined(DeviceRanks& own) {
  const PeerSet& peers = own.backend(0).peers();
  if (peers.network()) return "uses the network";
  return peers.spans_hosts() && peers.hosts().is_one_host() ? "" : "the hosts are not joined";
}

std::string run_all(DeviceRanks& own, Rank first, Rank ranks) {
  std::string result = run_collectives(own, first, ranks);
  for (const std::uint64_t count : {1U, 30000U})
    if (result == "right") result = run_messages(own, first, ranks, count);
  return result;
}

TEST(NvlinkDomains, RunAllCalls) {
  HostsOfOneRank hosts;
  hosts.start("rack", [](DeviceRanks& own, Rank first) {
    const std::string problem = check_joined(own);
    return problem.empty() ? run_all(own, first, kRanks) : problem;
  });
  hosts.expect_reports("right");
}

// The switches of a rack connect all of its hosts.
TEST(NvlinkDomains, AddBySwitches) {
  HostsOfOneRank hosts;
  hosts.start("rack", [](DeviceRanks& own, Rank first) -> std::string {
    if (!has_multicast(own)) return "no multicast object";
    std::barrier<> alone(1);
    const Member member = {own, first, kRanks, alone};
    for (const SwitchCall& call :
         {SwitchCall{DataType::float32, Reduction::sum, 3001}, SwitchCall{DataType::bfloat16, Reduction::avg, 77},
          SwitchCall{.count = 501, .collective = Collective::all_gather}}) {
      const std::string result = run_switch_call(member, call, "switch_staged");
      if (result != "right") return result;
    }
    return "right";
  });
  hosts.expect_reports("right");
}

// Returns "" if no hosts are joined.
std::string check_separate(DeviceRanks& own) {
  const PeerSet& peers = own.backend(0).peers();
  return peers.network() && peers.hosts().count() == kRanks ? "" : "some hosts are joined";
}

// All ranks of a domain use the network if one of them cannot create or open memory, or is configured so.
TEST(NvlinkDomains, UseTheNetwork_WhereOneRankCannotShareMemory) {
  const std::pair<const char*, const char*> kSettings[] = {{"TUTTI_PTX_FABRIC", "refused"},
                                                           {"TUTTI_PTX_FABRIC", "unopened"},
                                                           {"NCCL_MNNVL_ENABLE", "0"},
                                                           {"TUTTI_P2P_DISABLE", "1"}};
  for (const auto& [name, value] : kSettings) {
    SCOPED_TRACE(name + std::string("=") + value);
    HostsOfOneRank hosts;
    const auto work = [](DeviceRanks& own, Rank first) {
      const std::string problem = check_separate(own);
      return problem.empty() ? run_collectives(own, first, kRanks, 1) : problem;
    };
    hosts.start("rack", work, {{name, value}});
    hosts.expect_reports("right");
  }
}

// A host whose device is in no domain is not joined, and the others are.
TEST(NvlinkDomains, JoinHosts_BesideOneWithoutNvlinks) {
  HostsOfOneRank hosts;
  const auto work = [](DeviceRanks& own, Rank first) {
    const std::vector<Rank> wanted = {0, 0, 0, 3};
    const std::vector<Rank>& found = own.backend(0).peers().hosts().first_ranks();
    return found == wanted ? run_all(own, first, kRanks) : testing::PrintToString(found);
  };
  hosts.start("rack", work, {{"TUTTI_PTX_FABRIC", "none"}});
  hosts.expect_reports("right");
}

// One rank of a rack cannot share memory. The other rack is joined nevertheless.
TEST(NvlinkDomains, JoinOtherDomains_WhereOneFails) {
  HostsOfOneRank hosts;
  const auto work = [](DeviceRanks& own, Rank first) {
    const std::vector<Rank> wanted = {0, 0, 2, 3};
    const std::vector<Rank>& found = own.backend(0).peers().hosts().first_ranks();
    return found == wanted ? run_collectives(own, first, kRanks, 1) : testing::PrintToString(found);
  };
  hosts.start("two_racks", work, {{"TUTTI_PTX_FABRIC", "refused_in_two"}});
  hosts.expect_reports("right");
}

// Processes with two ranks each. Ranks of a process access each other's memory without handles.
TEST(NvlinkDomains, ConnectProcessesOfSeveralRanks) {
  DeviceProcessGroup processes;
  CommunicatorOptions options;
  options.transport = "tcp";
  options.update_agreement_hash();
  for (const Rank first : {0U, 2U}) {
    const auto rig = [=] {
      ::setenv("TUTTI_PTX_DEVICES", "2", 1);
      ::setenv("TUTTI_PTX_FABRIC", "rack", 1);
      cudaSetDevice(static_cast<int>(first / 2));
      return cuda_rig();
    };
    const auto work = [](DeviceRanks& own, Rank rank) {
      const std::string problem = check_joined(own);
      return problem.empty() ? run_all(own, rank, kRanks) : problem;
    };
    processes.start(rig, first, 2, kRanks, work, options);
  }
  processes.expect_reports("right");
}

// Two domains, which the network connects.
TEST(NvlinkDomains, CommunicateByTheNetwork_WithEachOther) {
  ::setenv("TUTTI_PTX_FABRIC", "two_racks", 1);
  const auto work = [](const Member& member) -> std::string {
    const PeerSet& peers = member.own.backend(0).peers();
    if (!peers.network() || peers.hosts().count() != 2) return "other domains";
    if (peers.hosts().first_rank_of_host(member.rank) != member.rank / 4 * 4) return "ranks of other hosts";
    if (peers.rails().partners() != 1) return "other rails";
    for (const Collective collective :
         {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
      for (const std::uint64_t count : {1U, 3001U, 50001U}) {
        const std::string result =
            run_switch_call(member, {.type = DataType::int32, .count = count, .collective = collective}, "");
        if (result != "right") return result;
      }
    }
    return "right";
  };
  EXPECT_EQ(run_ranks_on_hosts({0, 0, 1, 1, 2, 2, 3, 3}, "all", work), "right");
  ::unsetenv("TUTTI_PTX_FABRIC");
}

// The switches of each rack add, and ranks at the same position in the racks exchange the sums.
TEST(NvlinkDomains, AddBySwitchesOfEachRack) {
  ::setenv("TUTTI_PTX_FABRIC", "two_racks", 1);
  for (const char* algorithm : {"host_staged", "tree_staged"}) {
    const auto work = [&](const Member& member) -> std::string {
      if (!has_multicast(member.own)) return "no multicast object";
      return run_switch_call(member, {DataType::float32, Reduction::sum, 3001}, algorithm);
    };
    EXPECT_EQ(run_ranks_on_hosts({0, 0, 1, 1, 2, 2, 3, 3}, "all", work, algorithm), "right") << algorithm;
  }
  ::unsetenv("TUTTI_PTX_FABRIC");
}

// More ranks than hosts usually have: the ring serves calls that LL does not.
TEST(NvlinkDomains, ServeManyRanks) {
  struct ChosenCall {
    SwitchCall call;
    const char* algorithm;
  };
  constexpr ChosenCall kCalls[] = {
      {{.type = DataType::float32, .count = 3001}, "one_shot"},
      {{.type = DataType::float32, .count = 160'001, .channels = 2}, "switch_staged"},
      {{.type = DataType::int32, .count = 160'001, .channels = 2}, "two_shot_staged"},
      {{.type = DataType::float32, .count = 40'001, .collective = Collective::all_gather, .channels = 2},
       "switch_staged"},
      {{.type = DataType::float32, .count = 25'001, .collective = Collective::all_to_all, .channels = 2},
       "direct_staged"},
      {{.type = DataType::float32, .count = 100'001, .collective = Collective::broadcast, .channels = 2},
       "switch_staged"}};
  ::setenv("TUTTI_PTX_FABRIC", "rack", 1);
  const auto work = [&](const Member& member) -> std::string {
    for (const ChosenCall& each : kCalls) {
      const std::string result = run_switch_call(member, each.call, "");
      const std::string ran = member.own[0].last_run().algorithm;
      if (result != "right" || ran != each.algorithm) return each.algorithm + (": " + result) + ", ran " + ran;
    }
    return "right";
  };
  EXPECT_EQ(run_ranks_on_hosts({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, "all", work), "right");
  ::unsetenv("TUTTI_PTX_FABRIC");
}

// A host without NVLinks to others stays alone.
TEST(NvlinkDomains, JoinNoHost_WhoseRanksDiffer) {
  ::setenv("TUTTI_PTX_FABRIC", "two_racks", 1);
  const auto work = [](const Member& member) -> std::string {
    const Hosts& hosts = member.own.backend(0).peers().hosts();
    // Ranks 0 to 3 are in one rack, 4 to 7 in the other; the host of ranks 3 and 4 is in none.
    const std::vector<Rank> wanted = {0, 0, 0, 3, 3, 5, 5, 5};
    return hosts.first_ranks() == wanted ? "right" : testing::PrintToString(hosts.first_ranks());
  };
  EXPECT_EQ(run_ranks_on_hosts({0, 0, 1, 2, 2, 3, 4, 4}, "all", work), "right");
  ::unsetenv("TUTTI_PTX_FABRIC");
}

// Ranks of other hosts could access windows after a failure.
TEST(NvlinkDomains, HaveNoWindows) {
  HostsOfOneRank hosts;
  const auto work = [](DeviceRanks& own, Rank) -> std::string {
    std::byte* memory = own.rig().device().allocate_shared(1 << 20).value();
    const auto window = own.backend(0).register_window({memory, 1 << 20, WindowGuarantee::symmetric});
    own.rig().device().free(memory);
    return window.ok() && window.value() == 0 ? "right" : "a window";
  };
  hosts.start("rack", work, {}, 2);
  hosts.expect_reports("right");
}

TEST(NvlinkDomains, AreInheritedByParts) {
  HostsOfOneRank hosts;
  hosts.start("rack", [](DeviceRanks& own, Rank rank) -> std::string {
    auto part = own[0].split(static_cast<int>(rank % 2), 0, own[0].options());
    if (!part.ok()) return std::move(part).status().message();
    const std::string problem = part.value()->on_device()->peers().network() ? "uses the network" : "";
    return problem.empty() ? run_sum_in(own, *part.value(), kRanks / 2) : problem;
  });
  hosts.expect_reports("right");
}

// No rank asks for failures, and no call has a time limit: the thread that watches the connections ends the kernels.
TEST(NvlinkDomains, ReportRankDeath) {
  HostsOfOneRank hosts;
  const Gate gate;
  const auto work = [&](DeviceRanks& own, Rank rank) -> std::string {
    auto* buffer = own.take<float>(1000, 1);
    DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, 1000, buffer, buffer));
    call.options.timeout_ms = 0;
    call.options.update_agreement_hash();
    if (rank == kRanks - 1) {
      gate.open();
      for (;;) ::pause();
    }
    if (!enqueue({&call, 1}).ok()) return "not enqueued";
    const Status ended = own.rig().synchronize(own.stream(0));
    if (!ended.ok()) return "the kernel waited too long: " + ended.message();
    const std::string error = own[0].failure().message();
    return error.find("rank 3") != std::string::npos ? "reported" : error;
  };
  hosts.start("rack", work);
  gate.wait();
  hosts.kill(kRanks - 1);
  for (Rank rank = 0; rank + 1 < kRanks; ++rank) EXPECT_EQ(hosts.report(rank), "reported");
}

// Memory that two ranks export in a part of the communicator that both make, and the part.
struct PartWithMemory {
  std::unique_ptr<Communicator> part;
  const std::byte* memory = nullptr;
};

PartWithMemory make_part(DeviceRanks& own, Rank rank) {
  PartWithMemory made = {own[0].split(0, static_cast<int>(rank), own[0].options()).value()};
  made.memory = made.part->on_device()->peers().own_memory().exported_lanes();
  return made;
}

// A rank that leaves first keeps its memory, which the others use until they have left. Later parts have other memory.
TEST(NvlinkDomains, KeepMemory_AfterLeavingFirst) {
  HostsOfOneRank hosts;
  const Gate has_left;
  const auto work = [&](DeviceRanks& own, Rank rank) -> std::string {
    PartWithMemory first = make_part(own, rank);
    const std::string result = run_sum_in(own, *first.part, 2);
    if (result != "right") return result;
    if (rank == 1) has_left.wait();
    if (rank == 0) {
      const Status left = first.part->leave();
      if (!left.ok()) return left.message();
      first.part = nullptr;
      has_left.open();
    }
    const PartWithMemory second = make_part(own, rank);
    return second.memory != first.memory ? run_sum_in(own, *second.part, 2) : "memory was reused";
  };
  hosts.start("rack", work, {}, 2);
  hosts.expect_reports("right");
}

TEST(NvlinkDomains, ReuseMemory_WhenAllHaveLeft) {
  HostsOfOneRank hosts;
  const auto work = [](DeviceRanks& own, Rank rank) -> std::string {
    PartWithMemory first = make_part(own, rank);
    std::string result = run_sum_in(own, *first.part, 2);
    const Status ended = first.part->finalize();
    if (!ended.ok()) return ended.message();
    first.part = nullptr;
    const PartWithMemory second = make_part(own, rank);
    if (result == "right") result = run_sum_in(own, *second.part, 2);
    return second.memory == first.memory ? result : "memory was not reused";
  };
  hosts.start("rack", work, {}, 2);
  hosts.expect_reports("right");
}

}  // namespace
}  // namespace tutti::test
