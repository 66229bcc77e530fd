// Rendezvous of ranks that a launcher has started.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "src/base/log.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/launcher.h"
#include "tests/bootstrap/processes.h"

namespace tutti::test {
namespace {

std::string join_at(const RendezvousPoint& point, Rank rank, Rank ranks, int rounds) {
  const Watch watch = {Deadline::after_ms(20'000)};
  JoinOptions join;
  join.timeout_ms = 20'000;
  for (int round = 0; round < rounds; ++round) {
    Result<UniqueId> id = share_unique_id({rank, ranks, "test", point}, RendezvousOptions{}, watch);
    if (!id.ok()) return std::move(id).status().message();
    Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(id.value(), rank, ranks, join);
    if (!joined.ok()) return std::move(joined).status().message();
  }
  return "ok";
}

RendezvousPoint on_this_host() {
  RendezvousPoint point;
  point.job = "test." + std::to_string(::getpid());
  return point;
}

TEST(Rendezvous, JoinsRanksOfHost_Repeatedly) {
  const RendezvousPoint point = on_this_host();
  Processes processes;
  for (const Rank rank : {3, 2, 1, 0}) processes.start([=] { return join_at(point, rank, 4, 5); });
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

// Returns a free port below the range from which the system takes ports for sockets of other tests.
std::uint16_t free_port() {
  constexpr int kFirst = 10'000, kPorts = 20'000;
  static int last = ::getpid();
  for (;;) {
    last = last % kPorts + 1;
    Address address = loopback_address();
    address.port = static_cast<std::uint16_t>(kFirst + last);
    if (listen_at({address, "", SOCK_STREAM}).ok()) return address.port;
  }
}

RendezvousPoint at_a_port() {
  RendezvousPoint point;
  point.host = "localhost";
  point.variable = "TUTTI_ROOT";
  point.port = free_port();
  return point;
}

TEST(Rendezvous, JoinsRanks_AtPort) {
  const RendezvousPoint point = at_a_port();
  Processes processes;
  for (const Rank rank : {2, 1, 0}) processes.start([=] { return join_at(point, rank, 3, 2); });
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

// The ranks disagree on their number, report it, and try again at once.
TEST(Rendezvous, CanBeRetried_WhenJoiningFailed) {
  for (const RendezvousPoint& point : {on_this_host(), at_a_port()}) {
    const Gate have_id, all_have_id;
    Processes processes;
    for (const Rank rank : {0, 1, 2}) {
      processes.start([=, &have_id, &all_have_id]() -> std::string {
        const Watch watch = {Deadline::after_ms(20'000)};
        Result<UniqueId> id = share_unique_id({rank, 3, "test", point}, RendezvousOptions{}, watch);
        have_id.open();
        all_have_id.wait();
        if (!id.ok()) return std::move(id).status().message();
        const Status first = Bootstrap::join(id.value(), rank, rank == 2 ? 4 : 3, {}).status();
        if (first.code() != Code::invalid_usage) return "first: " + first.message();
        return join_at(point, rank, 3, 2);
      });
    }
    for (int i = 0; i < 3; ++i) have_id.wait();
    all_have_id.open(3);
    for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
  }
}

// The warnings of rank 0 when it creates an id for the rendezvous address.
std::string warnings_at(const RendezvousPoint& point) {
  static std::string lines;
  Processes processes;
  processes.start([&] {
    set_log_sink([](std::string_view line) { lines += line; });
    return join_at(point, 0, 1, 1) + "; " + lines;
  });
  return processes.report(0);
}

TEST(Rendezvous, Warns_WhenOtherUsersMayJoin) {
  EXPECT_EQ(warnings_at(on_this_host()), "ok; ");
  const std::string warned = warnings_at(at_a_port());
  EXPECT_NE(warned.find("can join, also one of another user of this host; set TUTTI_SECRET_FILE"), std::string::npos)
      << warned;
}

TEST(Rendezvous, RejectsUnknownInterface_EvenWhenUnused) {
  RendezvousOptions options;
  for (const Rank rank : {0, 1}) {
    options.socket_ifname = "nonsense";
    const LaunchedRank launched = {rank, 2, "test", on_this_host()};
    const Status status = share_unique_id(launched, options, {Deadline::after_ms(1)}).status();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find("is called nonsense (TUTTI_SOCKET_IFNAME"), std::string::npos) << status.message();
  }
  for (const char* harmless : {"=lo", "^lo,docker"}) {
    options.socket_ifname = harmless;
    const LaunchedRank launched = {1, 2, "test", on_this_host()};
    EXPECT_EQ(share_unique_id(launched, options, {Deadline::after_ms(1)}).status().code(), Code::timeout);
  }
}

TEST(Rendezvous, DistinguishesLongJobNames) {
  RendezvousPoint first = on_this_host();
  first.job += std::string(200, 'x');
  RendezvousPoint second = first;
  second.job += "y";
  Processes processes;
  for (const Rank rank : {0, 1}) {
    processes.start([=] { return join_at(first, rank, 2, 1); });
    processes.start([=] { return join_at(second, rank, 2, 1); });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

TEST(Rendezvous, NamesVariableOfHost_WhenHostIsUnknown) {
  RendezvousPoint point;
  point.host = std::string(64, 'x') + ".invalid";  // A label has at most 63 characters.
  point.port = 29501;
  point.variable = "TUTTI_ROOT";
  for (const Rank rank : {0, 1}) {
    const Status status = share_unique_id({rank, 2, "test", point}, {}, {Deadline::after_ms(100)}).status();
    const std::string text = "TUTTI_ROOT names a host without address: look up " + point.host + ": ";
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  }
}

TEST(Rendezvous, ReportsThatRankZeroIsMissing) {
  const Watch watch = {Deadline::after_ms(100)};
  const Status status = share_unique_id({1, 2, "test", on_this_host()}, RendezvousOptions{}, watch).status();
  EXPECT_NE(status.message().find("asking rank 0 for the unique id"), std::string::npos) << status.message();
}

// Rank 0 waits for rank 1, while a duplicate of rank 0 tries to listen at the same address.
TEST(Rendezvous, NamesBothProcesses_WhenRankZeroIsStartedTwice) {
  for (const RendezvousPoint& point : {on_this_host(), at_a_port()}) {
    const Gate listens, refused;
    Processes processes;
    processes.start([&]() -> std::string {
      Result<UniqueId> id = share_unique_id({0, 2, "test", point}, RendezvousOptions{}, {});
      listens.open();
      refused.wait();
      if (!id.ok()) return "the first does not listen";
      JoinOptions join;
      join.timeout_ms = 100;
      const std::string text = Bootstrap::join(id.value(), 0, 2, join).status().message();
      return std::to_string(::getpid()) + " " + text;
    });
    processes.start([&]() -> std::string {
      listens.wait();
      const std::string text = share_unique_id({0, 2, "test", point}, RendezvousOptions{}, {}).status().message();
      refused.open();
      return std::to_string(::getpid()) + " " + text;
    });
    const std::string first = processes.report(0);
    const std::string second = processes.report(1);
    const std::string first_pid = "pid " + first.substr(0, first.find(' '));
    const std::string second_pid = "pid " + second.substr(0, second.find(' '));
    EXPECT_NE(first.find("rank 1 of 2 did not join within 100 ms; rank 0 was started twice: "), std::string::npos)
        << first;
    EXPECT_NE(first.find(second_pid), std::string::npos) << first;
    EXPECT_NE(second.find("rank 0 was started twice: this process ("), std::string::npos) << second;
    EXPECT_NE(second.find(second_pid), std::string::npos) << second;
    EXPECT_EQ(second.find("already in use"), std::string::npos) << second;
    const bool knows_pid = second.find(first_pid + ", which listens at") != std::string::npos;
    EXPECT_EQ(knows_pid, point.host.empty()) << second;
  }
}

TEST(Rendezvous, ReportsOtherProgram_WhenPortIsInUse) {
  const RendezvousPoint point = at_a_port();
  const Address address = resolve(point.host, point.port).value();
  const Socket other = listen_at({address, "", SOCK_STREAM}).value();
  const std::string text = share_unique_id({0, 2, "test", point}, RendezvousOptions{}, {}).status().message();
  EXPECT_NE(text.find("already in use: another program has this port: choose another port"), std::string::npos) << text;
}

// The port in the message differs from the user's MASTER_PORT, so the message explains the port.
TEST(Rendezvous, ExplainsWhyItUsesPortAfterLaunchers) {
  const Socket taken = listen_at({loopback_address(), "", SOCK_STREAM}).value();
  const auto port = static_cast<std::uint16_t>(local_address(taken).value().port);
  RendezvousPoint point;
  point.host = "127.0.0.1";
  point.port = port;
  point.variable = "MASTER_ADDR";
  const std::string text = share_unique_id({0, 2, "test", point}, RendezvousOptions{}, {}).status().message();
  EXPECT_NE(text.find("127.0.0.1:" + std::to_string(port) + ": Address already in use"), std::string::npos) << text;
  EXPECT_NE(text.find("it is the port after MASTER_PORT, since the launcher itself has " + std::to_string(port - 1)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("set another MASTER_PORT"), std::string::npos) << text;
  point.variable = "TUTTI_ROOT";
  const std::string ours = share_unique_id({0, 2, "test", point}, RendezvousOptions{}, {}).status().message();
  EXPECT_EQ(ours.find("MASTER_PORT"), std::string::npos) << ours;
}

TEST(Rendezvous, SuspectsLoopback_WhenRanksAreMissing) {
  const Environment environment({{"RANK", "1"},
                                 {"WORLD_SIZE", "2"},
                                 {"LOCAL_WORLD_SIZE", "1"},
                                 {"MASTER_ADDR", "localhost"},
                                 {"MASTER_PORT", "29400"}});
  const LaunchedRank launched = find_launched_rank(environment).value();
  const std::string advice = "localhost works on one host only; for several hosts set MASTER_ADDR to";
  EXPECT_NE(advice_for(launched.point).find(advice), std::string::npos) << advice_for(launched.point);
  RendezvousPoint of_slurm = launched.point;
  of_slurm.variable = "SLURM_STEP_NODELIST";
  EXPECT_NE(advice_for(of_slurm).find("for several hosts set TUTTI_ROOT to host:port"), std::string::npos);
}

TEST(Rendezvous, RequiresAddressOfRankZerosHost) {
  RendezvousPoint elsewhere;
  elsewhere.host = "192.0.2.1";  // Reserved for documentation.
  elsewhere.port = 5000;
  const std::string text = share_unique_id({0, 2, "test", elsewhere}, RendezvousOptions{}, {}).status().message();
  EXPECT_NE(text.find("must be an address of rank 0's host"), std::string::npos) << text;
}

TEST(Rendezvous, SuggestsRemedy_WhenRankJoinsTwice) {
  const RendezvousPoint point = on_this_host();
  Processes processes;
  for (int i = 0; i < 2; ++i) processes.start([=] { return join_at(point, 1, 3, 1); });
  processes.start([=] { return join_at(point, 0, 3, 1); });
  for (const std::string& text : processes.reports()) {
    EXPECT_EQ(text.find("rank 1 was started twice: "), 0U) << text;
    EXPECT_NE(text.find("; if these are two jobs, set TUTTI_ROOT"), std::string::npos) << text;
  }
}

TEST(Rendezvous, NamesBothWorldSizes_WhenTheyDiffer) {
  const RendezvousPoint point = on_this_host();
  Processes processes;
  for (const Rank ranks : {2, 3}) processes.start([=] { return join_at(point, ranks - 2, ranks, 1); });
  for (const std::string& text : processes.reports()) {
    EXPECT_EQ(text.find("world sizes differ: rank "), 0U) << text;
    const bool two_first = text.find("rank 0") < text.find("rank 1 ");
    EXPECT_NE(text.find(two_first ? "started with 2 ranks, and rank 1" : "started with 3 ranks, and rank 0"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(two_first ? ") with 3;" : ") with 2;"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("; all ranks of a job must have the same number")) << text;
  }
}

// Rank 0 joins last, in the process of the rendezvous, and ends the process when it has received the error.
TEST(Rendezvous, ReportsToAllRanks_BeforeRankZeroEndsItsProcess) {
  constexpr Rank kOthers = 15;
  static const Gate connected;
  const RendezvousPoint point = on_this_host();
  Processes processes;
  processes.start([&]() -> std::string {
    set_log_level(LogLevel::trace);
    set_log_sink([](std::string_view line) {
      if (line.find("connected: ") != std::string_view::npos) connected.open();
    });
    Result<UniqueId> id = share_unique_id({0, 2, "test", point}, RendezvousOptions{}, {});
    for (Rank other = 0; other < kOthers; ++other) connected.wait();
    return id.ok() ? Bootstrap::join(id.value(), 0, 2, {}).status().message() : std::move(id).status().message();
  });
  for (Rank rank = 1; rank <= kOthers; ++rank) processes.start([=] { return join_at(point, rank, kOthers + 2, 1); });
  for (const std::string& text : processes.reports()) EXPECT_EQ(text.find("world sizes differ: rank "), 0U) << text;
}

// The rank exits long before rank 0's deadline.
TEST(Rendezvous, ReportsRankWithoutSecret) {
  const RendezvousPoint point = on_this_host();
  char path[] = "/tmp/tutti-secret-XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_EQ(::write(file, "0123456789abcdef", 16), 16);
  ::close(file);
  const Gate refused;
  Processes processes;
  processes.start([&]() -> std::string {
    Result<UniqueId> id = share_unique_id({0, 2, "test", point}, RendezvousOptions{}, {});
    refused.wait();
    JoinOptions join;
    join.timeout_ms = 100;
    return id.ok() ? Bootstrap::join(id.value(), 0, 2, join).status().message() : std::move(id).status().message();
  });
  processes.start([&] {
    RendezvousOptions with_secret;
    with_secret.secret_file = path;
    const Watch watch = {Deadline::after_ms(20'000)};
    const std::string text = share_unique_id({1, 2, "test", point}, with_secret, watch).status().message();
    refused.open();
    return text;
  });
  const std::string rank_0 = processes.report(0);
  EXPECT_NE(rank_0.find("rank 1 connected and closed the connection: it ended, or does not have the same secret"),
            std::string::npos)
      << rank_0;
  EXPECT_NE(processes.report(1).find("does not hold the same secret"), std::string::npos);
  ::unlink(path);
}

bool names_the_cure(std::string_view text) {
  return text.find("set TUTTI_ROOT to host:port") != std::string_view::npos;
}

// Returns why rank 0 fails, which waits for a second rank.
std::string failure_of_lonely_rank(const RendezvousPoint& point) {
  Processes processes;
  processes.start([&]() -> std::string {
    Result<UniqueId> id = share_unique_id({0, 2, "test", point}, RendezvousOptions{}, {});
    JoinOptions join;
    join.timeout_ms = 100;
    return id.ok() ? Bootstrap::join(id.value(), 0, 2, join).status().message() : "no id";
  });
  return processes.report(0);
}

TEST(Rendezvous, SuggestsRemedy_WhenRanksUseDifferentNames) {
  RendezvousPoint named = on_this_host();
  const std::string by_job = failure_of_lonely_rank(named);
  EXPECT_EQ(by_job.find("rank 1 of 2 did not join within 100 ms; are the ranks of several users"), 0U) << by_job;
  EXPECT_TRUE(names_the_cure(by_job)) << by_job;
  named.by_parent = true;
  const std::string by_parent = failure_of_lonely_rank(named);
  EXPECT_NE(by_parent.find("; are the ranks of several shells, users, containers or namespaces? Then"),
            std::string::npos)
      << by_parent;
  named.host = "host-a";
  EXPECT_EQ(advice_for(named), "");
}

TEST(Rendezvous, SuggestsRemedy_WhileRanksStillWait) {
  static std::string lines;
  const RendezvousPoint point = on_this_host();
  Processes processes;
  for (const Rank rank : {0, 1}) {
    RendezvousPoint alone = point;
    alone.job += "." + std::to_string(rank);
    processes.start([=]() -> std::string {
      set_log_sink([](std::string_view line) { lines += line; });
      RendezvousOptions options;
      options.report_after_ms = 1;
      Result<UniqueId> id = share_unique_id({rank, 2, "test", alone}, options, {Deadline::after_ms(200)});
      JoinOptions join;
      join.timeout_ms = 200;
      if (id.ok()) (void)Bootstrap::join(id.value(), rank, 2, join).status().ok();
      return lines;
    });
  }
  const std::string first = processes.report(0);
  EXPECT_NE(first.find("waiting for rank 1 of 2 to join"), std::string::npos) << first;
  EXPECT_TRUE(names_the_cure(first)) << first;
  const std::string second = processes.report(1);
  EXPECT_NE(second.find("rank 1 is still asking rank 0 for the unique id at "), std::string::npos) << second;
  EXPECT_TRUE(names_the_cure(second)) << second;
}

}  // namespace
}  // namespace tutti::test
