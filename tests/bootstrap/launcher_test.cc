// Ranks as launchers describe them, and how they find each other.
#include "src/bootstrap/launcher.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "src/base/log.h"
#include "src/bootstrap/address.h"
#include "tests/bootstrap/processes.h"

namespace tutti::test {
namespace {

using Variables = std::map<std::string, std::string>;

std::string failure(const Variables& variables) {
  return find_launched_rank(Environment(variables)).status().message();
}

LaunchedRank found(const Variables& variables) {
  Result<LaunchedRank> result = find_launched_rank(Environment(variables));
  EXPECT_TRUE(result.ok()) << failure(variables);
  return result.ok() ? result.value() : LaunchedRank{};
}

TEST(Launcher, IsNoneWhereNoVariableSpeaksOfRanks) {
  const LaunchedRank launched = found({{"HOME", "/root"}});
  EXPECT_EQ(launched.ranks, 1U);
  EXPECT_EQ(launched.launcher, "");
}

TEST(Launcher, IsTorchrun) {
  const LaunchedRank launched = found({{"RANK", "3"},
                                       {"WORLD_SIZE", "8"},
                                       {"LOCAL_RANK", "1"},
                                       {"LOCAL_WORLD_SIZE", "2"},
                                       {"MASTER_ADDR", "host-a"},
                                       {"MASTER_PORT", "29400"}});
  EXPECT_EQ(launched.rank, 3U);
  EXPECT_EQ(launched.ranks, 8U);
  EXPECT_EQ(launched.meeting.host, "host-a");
  EXPECT_EQ(launched.meeting.port, 29401);  // torchrun's own store has the port itself.
  EXPECT_EQ(launched.launcher, "torchrun (RANK, WORLD_SIZE, MASTER_ADDR)");
}

TEST(Launcher, MeetsOnASocketOfTheHostIfAllRanksAreThere) {
  Variables variables = {{"RANK", "1"},
                         {"WORLD_SIZE", "2"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "localhost"},
                         {"MASTER_PORT", "29400"}};
  const LaunchedRank first = found(variables);
  EXPECT_EQ(first.meeting.host, "");
  EXPECT_EQ(first.launcher, "torchrun (RANK, WORLD_SIZE)");
  variables["MASTER_PORT"] = "29500";
  EXPECT_NE(found(variables).meeting.job, first.meeting.job);
}

TEST(Launcher, IsOpenMpi) {
  const LaunchedRank launched = found({{"OMPI_COMM_WORLD_RANK", "0"},
                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                       {"PMIX_NAMESPACE", "1281622017"}});
  EXPECT_EQ(launched.ranks, 4U);
  EXPECT_NE(launched.meeting.job.find("1281622017"), std::string::npos);
  EXPECT_EQ(launched.launcher, "Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)");
}

TEST(Launcher, IsMpich) {
  const LaunchedRank launched = found({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(launched.rank, 1U);
  EXPECT_NE(launched.meeting.job.find(std::to_string(::getppid())), std::string::npos);
}

TEST(Launcher, IsSlurm) {
  Variables variables = {{"SLURM_PROCID", "5"},
                         {"SLURM_NTASKS", "6"},
                         {"SLURM_NNODES", "1"},
                         {"SLURM_JOB_ID", "77"},
                         {"SLURM_STEP_ID", "0"}};
  EXPECT_EQ(found(variables).rank, 5U);
  variables["SLURM_NNODES"] = "2";
  EXPECT_NE(failure(variables).find("set TUTTI_ROOT to host:port"), std::string::npos);
  variables["TUTTI_ROOT"] = "[fd00::2]:4711";
  EXPECT_EQ(found(variables).meeting.host, "fd00::2");
  EXPECT_EQ(found(variables).meeting.port, 4711);
}

TEST(Launcher, PrefersOurOwnVariables) {
  const LaunchedRank launched = found(
      {{"TUTTI_RANK", "1"}, {"TUTTI_RANKS", "2"}, {"TUTTI_ROOT", "host-b:4711"}, {"RANK", "7"}, {"WORLD_SIZE", "8"}});
  EXPECT_EQ(launched.rank, 1U);
  EXPECT_EQ(launched.meeting.host, "host-b");
  EXPECT_EQ(launched.launcher, "tutti (TUTTI_RANK, TUTTI_RANKS, TUTTI_ROOT)");
}

TEST(Launcher, NamesTheVariableAndItsValue) {
  EXPECT_EQ(failure({{"RANK", "two"}, {"WORLD_SIZE", "8"}}), "RANK is \"two\", but must be a whole number, 0 or more");
  EXPECT_EQ(failure({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "WORLD_SIZE is \"0\", but must be a whole number, 1 or more");
  EXPECT_EQ(failure({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}), "PMI_RANK is 4, but PMI_SIZE is 4: ranks count from 0");
  EXPECT_EQ(failure({{"TUTTI_RANK", "0"}}), "TUTTI_RANKS is not set");
  EXPECT_EQ(failure({{"TUTTI_RANK", "0"}, {"TUTTI_RANKS", "65537"}}),
            "TUTTI_RANKS is 65537, but a communicator has at most 65536 ranks");
  EXPECT_EQ(failure({{"TUTTI_RANK", "0"}, {"TUTTI_RANKS", "2"}, {"TUTTI_ROOT", "host"}}),
            "TUTTI_ROOT is \"host\", but must be host:port");
  EXPECT_EQ(failure({{"TUTTI_RANK", "0"}, {"TUTTI_RANKS", "2"}, {"TUTTI_ROOT", "host:99999"}}),
            "the port of TUTTI_ROOT is \"99999\", but must be a whole number from 1 to 65535");
}

// What is logged where only a part of a launcher's variables is set.
std::string warned_of(const Variables& variables) {
  static std::string lines;
  lines.clear();
  set_log_sink([](std::string_view line) { lines += line; });
  EXPECT_EQ(found(variables).ranks, 1U);
  set_log_sink(nullptr);
  return lines;
}

TEST(Launcher, WarnsWhereItIsSetByHalf) {
  const auto says = [](const Variables& variables, const char* expected) {
    const std::string warned = warned_of(variables);
    EXPECT_NE(warned.find(expected), std::string::npos) << warned;
  };
  says({{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set, but RANK is not: running as one rank");
  says({{"OMPI_COMM_WORLD_RANK", "0"}}, "OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is not");
  says({{"TUTTI_ROOT", "host:4711"}}, "TUTTI_ROOT is set, but TUTTI_RANK, with TUTTI_RANKS, is not");
  EXPECT_EQ(warned_of({{"HOME", "/root"}}), "");
}

std::string join_at(const MeetingPoint& meeting, Rank rank, Rank ranks, int rounds) {
  const Watch watch = {Deadline::after_ms(20'000)};
  JoinOptions join;
  join.timeout_ms = 20'000;
  for (int round = 0; round < rounds; ++round) {
    Result<UniqueId> id = share_unique_id({rank, ranks, "test", meeting}, RendezvousOptions{}, watch);
    if (!id.ok()) return std::move(id).status().message();
    Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(id.value(), rank, ranks, join);
    if (!joined.ok()) return std::move(joined).status().message();
  }
  return "ok";
}

MeetingPoint on_this_host() {
  MeetingPoint meeting;
  meeting.job = "test." + std::to_string(::getpid());
  return meeting;
}

TEST(Meeting, BringsRanksOfAHostTogetherAgainAndAgain) {
  const MeetingPoint meeting = on_this_host();
  Processes processes;
  for (const Rank rank : {3, 2, 1, 0}) processes.start([=] { return join_at(meeting, rank, 4, 5); });
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

MeetingPoint at_a_port() {
  const Socket free_port = listen_at({loopback_address(), "", SOCK_STREAM}).value();
  MeetingPoint meeting;
  meeting.host = "localhost";
  meeting.variable = "TUTTI_ROOT";
  meeting.port = local_address(free_port).value().port;
  return meeting;
}

TEST(Meeting, BringsRanksTogetherAtAPort) {
  const MeetingPoint meeting = at_a_port();
  Processes processes;
  for (const Rank rank : {2, 1, 0}) processes.start([=] { return join_at(meeting, rank, 3, 2); });
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

// The ranks disagree on their number, hear of it, and try again at once.
TEST(Meeting, IsFreeForAnotherTryWhenJoiningHasFailed) {
  for (const MeetingPoint& meeting : {on_this_host(), at_a_port()}) {
    const Gate have_id, all_have_id;
    Processes processes;
    for (const Rank rank : {0, 1, 2}) {
      processes.start([=, &have_id, &all_have_id]() -> std::string {
        const Watch watch = {Deadline::after_ms(20'000)};
        Result<UniqueId> id = share_unique_id({rank, 3, "test", meeting}, RendezvousOptions{}, watch);
        have_id.open();
        all_have_id.wait();
        if (!id.ok()) return std::move(id).status().message();
        const Status first = Bootstrap::join(id.value(), rank, rank == 2 ? 4 : 3, {}).status();
        if (first.code() != Code::invalid_usage) return "first: " + first.message();
        return join_at(meeting, rank, 3, 2);
      });
    }
    for (int i = 0; i < 3; ++i) have_id.wait();
    all_have_id.open(3);
    for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
  }
}

// What rank 0 is warned of when it makes an id to be fetched at the meeting point.
std::string warnings_at(const MeetingPoint& meeting) {
  static std::string lines;
  Processes processes;
  processes.start([&] {
    set_log_sink([](std::string_view line) { lines += line; });
    return join_at(meeting, 0, 1, 1) + "; " + lines;
  });
  return processes.report(0);
}

TEST(Meeting, WarnsWhereOtherUsersMayJoin) {
  EXPECT_EQ(warnings_at(on_this_host()), "ok; ");
  const std::string warned = warnings_at(at_a_port());
  EXPECT_NE(warned.find("may join, also other users of this host: set TUTTI_SECRET_FILE"), std::string::npos) << warned;
}

TEST(Meeting, RefusesAnInterfaceThatThereIsNotEvenWhereItNeedsNone) {
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

TEST(Meeting, KeepsLongJobNamesApart) {
  MeetingPoint first = on_this_host();
  first.job += std::string(200, 'x');
  MeetingPoint second = first;
  second.job += "y";
  Processes processes;
  for (const Rank rank : {0, 1}) {
    processes.start([=] { return join_at(first, rank, 2, 1); });
    processes.start([=] { return join_at(second, rank, 2, 1); });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

TEST(Meeting, SaysThatRankZeroDoesNotCome) {
  const Watch watch = {Deadline::after_ms(100)};
  const Status status = share_unique_id({1, 2, "test", on_this_host()}, RendezvousOptions{}, watch).status();
  EXPECT_NE(status.message().find("asking rank 0 for the unique id"), std::string::npos) << status.message();
}

// Two jobs of one shell meet at one place, and so do two ranks of one number.
TEST(Meeting, NamesTheCureWhereSomebodyElseListens) {
  // In a process of its own: who listens stays, with a thread, and the tests to come fork.
  const auto complaint = [](const MeetingPoint& meeting) {
    Processes processes;
    processes.start([&]() -> std::string {
      if (!share_unique_id({0, 2, "test", meeting}, RendezvousOptions{}, {}).ok()) return "the first does not listen";
      return share_unique_id({0, 2, "test", meeting}, RendezvousOptions{}, {}).status().message();
    });
    return processes.report(0);
  };
  const std::string named = complaint(on_this_host());
  EXPECT_NE(named.find("Address already in use: another job of this shell, or another rank of this number, is there: "
                       "set TUTTI_ROOT"),
            std::string::npos)
      << named;
  const std::string at_port = complaint(at_a_port());
  EXPECT_NE(at_port.find("another job or program has it: choose another port"), std::string::npos) << at_port;
}

// A user who has set MASTER_PORT does not know the port in the message.
TEST(Meeting, SaysWhyItIsAtThePortAfterTheLaunchers) {
  const Socket taken = listen_at({loopback_address(), "", SOCK_STREAM}).value();
  const auto port = static_cast<std::uint16_t>(local_address(taken).value().port);
  MeetingPoint meeting;
  meeting.host = "127.0.0.1";
  meeting.port = port;
  meeting.variable = "MASTER_ADDR";
  const std::string text = share_unique_id({0, 2, "test", meeting}, RendezvousOptions{}, {}).status().message();
  EXPECT_NE(text.find("127.0.0.1:" + std::to_string(port) + ": Address already in use"), std::string::npos) << text;
  EXPECT_NE(text.find("it is the port after MASTER_PORT, since the launcher itself has " + std::to_string(port - 1)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("set another MASTER_PORT"), std::string::npos) << text;
  meeting.variable = "TUTTI_ROOT";
  const std::string ours = share_unique_id({0, 2, "test", meeting}, RendezvousOptions{}, {}).status().message();
  EXPECT_EQ(ours.find("MASTER_PORT"), std::string::npos) << ours;
}

TEST(Meeting, OnLoopbackIsDoubtedWhereNobodyComes) {
  const LaunchedRank told = found({{"RANK", "1"},
                                   {"WORLD_SIZE", "2"},
                                   {"LOCAL_WORLD_SIZE", "1"},
                                   {"MASTER_ADDR", "localhost"},
                                   {"MASTER_PORT", "29400"}});
  const std::string doubt = "localhost leads each host to itself: where the ranks are on several, set MASTER_ADDR to";
  EXPECT_NE(advice_for(told.meeting).find(doubt), std::string::npos) << advice_for(told.meeting);
}

TEST(Meeting, WantsAnAddressOfRankZerosHost) {
  MeetingPoint elsewhere;
  elsewhere.host = "192.0.2.1";  // Of documentation alone.
  elsewhere.port = 5000;
  const std::string text = share_unique_id({0, 2, "test", elsewhere}, RendezvousOptions{}, {}).status().message();
  EXPECT_NE(text.find("must be an address of rank 0's host"), std::string::npos) << text;
}

TEST(Meeting, NamesTheCureWhereARankComesTwice) {
  const MeetingPoint meeting = on_this_host();
  Processes processes;
  for (int i = 0; i < 2; ++i) processes.start([=] { return join_at(meeting, 1, 3, 1); });
  processes.start([=] { return join_at(meeting, 0, 3, 1); });
  for (const std::string& text : processes.reports()) {
    EXPECT_NE(text.find("or another job meets here too: set TUTTI_ROOT"), std::string::npos) << text;
  }
}

// The rank has gone long before rank 0's deadline ends.
TEST(Meeting, SaysThatARankCameWithoutTheSecret) {
  const MeetingPoint meeting = on_this_host();
  char path[] = "/tmp/tutti-secret-XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_EQ(::write(file, "0123456789abcdef", 16), 16);
  ::close(file);
  const Gate refused;
  Processes processes;
  processes.start([&]() -> std::string {
    Result<UniqueId> id = share_unique_id({0, 2, "test", meeting}, RendezvousOptions{}, {});
    refused.wait();
    JoinOptions join;
    join.timeout_ms = 100;
    return id.ok() ? Bootstrap::join(id.value(), 0, 2, join).status().message() : std::move(id).status().message();
  });
  processes.start([&] {
    RendezvousOptions with_secret;
    with_secret.secret_file = path;
    const Watch watch = {Deadline::after_ms(20'000)};
    const std::string text = share_unique_id({1, 2, "test", meeting}, with_secret, watch).status().message();
    refused.open();
    return text;
  });
  const std::string rank_0 = processes.report(0);
  EXPECT_NE(rank_0.find("rank 1 came, but does not hold the same secret"), std::string::npos) << rank_0;
  EXPECT_NE(processes.report(1).find("does not hold the same secret"), std::string::npos);
  ::unlink(path);
}

bool names_the_cure(std::string_view text) {
  return text.find("set TUTTI_ROOT to host:port") != std::string_view::npos;
}

TEST(Meeting, NamesTheCureToRanksThatKnowItByDifferentNames) {
  MeetingPoint named = on_this_host();
  const auto told = [&] { return explain_absence(timeout_error("late"), named).message(); };
  EXPECT_TRUE(names_the_cure(told()));
  EXPECT_EQ(told().find("several shells"), std::string::npos);
  named.by_parent = true;
  EXPECT_NE(told().find("; are the ranks of several shells, users, containers or namespaces? Then"), std::string::npos);
  EXPECT_EQ(explain_absence(invalid_usage("twice"), named).message(), "twice");
  MeetingPoint elsewhere = at_a_port();
  elsewhere.host = "host-a";
  EXPECT_EQ(explain_absence(timeout_error("late"), elsewhere).message(), "late");
}

TEST(Meeting, NamesTheCureWhileItsRanksStillWait) {
  static std::string lines;
  const MeetingPoint meeting = on_this_host();
  Processes processes;
  for (const Rank rank : {0, 1}) {
    MeetingPoint alone = meeting;
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
