// Measurement of links between hosts when ranks join. All ranks have the same result, and no data remains in
// connections.
#include "src/communicator/joining/probe.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "src/communicator/planning/planning.h"
#include "tests/bootstrap/shared_unique_id.h"

namespace tutti::test {
namespace {

Watch watch() { return {Deadline::after_ms(60'000)}; }

std::string text_of(const NetworkFigures& figures) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%a %a %a", figures.message_us, figures.rank_gbytes_per_s,
                figures.host_gbytes_per_s);
  return text.data();
}

// Measures. Returns the result or the error, or "left over" if a connection has unread data.
std::string look(Bootstrap& bootstrap, const Hosts& hosts, bool wanted) {
  const std::vector<PeerSocket> peer_sockets = bootstrap.take_peer_sockets();
  auto seen = probe_network(bootstrap, hosts, peer_sockets, wanted, watch());
  if (!seen.ok()) return std::move(seen).status().message();
  if (!bootstrap.barrier(watch()).ok()) return "no barrier";
  char byte = 0;
  for (const PeerSocket& link : peer_sockets) {
    if (link.socket && (::recv(link.socket.get(), &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN)) return "left over";
  }
  // Keeps the connections open until all ranks have checked them.
  if (!bootstrap.barrier(watch()).ok()) return "no second barrier";
  return seen.value() ? text_of(*seen.value()) : "nothing";
}

using Rank1 = std::function<std::string(Bootstrap&, const Hosts&)>;

std::vector<std::string> join(const Hosts& hosts, const Rank1& odd) {
  const Meeting meeting;
  Processes processes;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    processes.start([&, rank]() -> std::string {
      JoinOptions options;
      options.one_host_per_rank = true;
      auto joined = Bootstrap::join(meeting.id(), rank, hosts.ranks(), options);
      if (!joined.ok()) return std::move(joined).status().message();
      return rank == 1 ? odd(*joined.value(), hosts) : look(*joined.value(), hosts, true);
    });
  }
  return processes.reports();
}

std::string as_others(Bootstrap& bootstrap, const Hosts& hosts) { return look(bootstrap, hosts, true); }

// More than twice as many programs run, or wait for a CPU, as there are CPUs.
bool is_busy_machine() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 && load > 2.0 * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
}

// Retries, since ranks reject measurements while other programs keep them from running.
TEST(ProbeNetwork, MeasuresTheSameOnAllRanks) {
  for (const std::vector<Rank>& host_of : {std::vector<Rank>{0, 1}, {0, 1, 2}, {0, 0, 1, 1}, {0, 1, 1, 0, 1}}) {
    std::vector<std::string> seen = {"nothing"};
    for (int i = 0; i < (host_of.size() > 2 ? 20 : 400) && seen[0] == "nothing"; ++i)
      seen = join(Hosts(host_of), as_others);
    for (const std::string& said : seen) {
      EXPECT_EQ(said, seen[0]);
      if (said == "nothing" && host_of.size() > 2) continue;
      if (said == "nothing" && is_busy_machine()) GTEST_SKIP() << "other programs kept the ranks from running";
      double message_us = 0, rank = 0, host = 0;
      ASSERT_EQ(std::sscanf(said.c_str(), "%la %la %la", &message_us, &rank, &host), 3) << said;
      EXPECT_GT(message_us, 0);
      EXPECT_GT(rank, 0);
      EXPECT_GT(host, 0);
    }
  }
}

// All ranks run on one CPU together with processes that never yield it. Times are then invalid, and ranks must return
// no result.
TEST(ProbeNetwork, MeasuresNothing_WhenRanksAreStarved) {
  cpu_set_t before, first;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&first);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  CPU_SET(cpu, &first);
  ASSERT_EQ(::sched_setaffinity(0, sizeof first, &first), 0);
  std::vector<pid_t> others;
  for (int i = 0; i < 6; ++i) {
    others.push_back(::fork());
    if (others.back() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile bool goes_on = true; goes_on;) continue;
  }
  std::vector<std::string> seen;
  for (int i = 0; i < 20 && (seen.empty() || seen[0] != "nothing"); ++i)
    seen = join(Hosts::one_rank_per_host(2), as_others);
  for (const pid_t other : others) ::kill(other, SIGKILL);
  for (const pid_t other : others) ::waitpid(other, nullptr, 0);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  for (const std::string& said : seen) EXPECT_EQ(said, "nothing");
}

TEST(ProbeNetwork, MeasuresNothing_WhenARankDisablesIt) {
  const auto odd = [](Bootstrap& bootstrap, const Hosts& hosts) { return look(bootstrap, hosts, false); };
  for (const std::string& said : join(Hosts::one_rank_per_host(3), odd)) EXPECT_EQ(said, "nothing");
}

TEST(ProbeNetwork, FailsOnAllRanks_WhenRankDies) {
  const auto odd = [](Bootstrap& bootstrap, const Hosts&) -> std::string {
    std::vector<std::uint64_t> wants(bootstrap.ranks(), 1);
    if (!bootstrap.all_gather(std::as_writable_bytes(std::span(wants)), 8, watch()).ok()) return "no agreement";
    ::_exit(0);  // Peers wait for the first message of rank 1.
  };
  const std::vector<std::string> said = join(Hosts::one_rank_per_host(4), odd);
  for (const Rank rank : {0U, 2U, 3U}) EXPECT_NE(said[rank].find("rank 1"), std::string::npos) << said[rank];
}

TEST(ProbeNetwork, SetsLinksOfCostModel) {
  Hosts hosts = Hosts::one_rank_per_host(4);
  const Machine unseen = machine_of(hosts);
  hosts.set_network(NetworkFigures{.message_us = 107, .rank_gbytes_per_s = 0.1, .host_gbytes_per_s = 0.2});
  const Hosts part = hosts.of({1, 3});
  for (const Hosts& each : {hosts, part}) {
    const Machine machine = machine_of(each);
    ASSERT_GT(machine.levels.size(), 1U);
    EXPECT_DOUBLE_EQ(machine.levels[1].latency_us, 100);
    EXPECT_EQ(machine.levels[1].rank_gbytes_per_s, 0.1);
    EXPECT_EQ(machine.levels[1].member_gbytes_per_s, 0.2);
    EXPECT_EQ(machine.levels[0].latency_us, unseen.levels[0].latency_us);
    EXPECT_EQ(machine.levels[0].member_gbytes_per_s, unseen.levels[0].member_gbytes_per_s);
  }
}

TEST(ProbeNetwork, IgnoresRatesLimitedByCpu) {
  const std::vector<Rank> host_of = {0, 1};
  Hosts hosts(host_of, {{.machine = 0, .cpus = 2}, {.machine = 0, .cpus = 2}});
  hosts.set_network(NetworkFigures{.message_us = 20, .rank_gbytes_per_s = 4, .host_gbytes_per_s = 4});
  EXPECT_EQ(machine_of(hosts).levels[1].member_gbytes_per_s, 0);
  hosts.set_network(NetworkFigures{.message_us = 20, .rank_gbytes_per_s = 0.125, .host_gbytes_per_s = 0.125});
  EXPECT_EQ(machine_of(hosts).levels[1].member_gbytes_per_s, 0.125);
}

}  // namespace
}  // namespace tutti::test
