// Ranks in separate processes join, and report why joining fails.
#include "src/bootstrap/bootstrap.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "src/base/log.h"
#include "src/bootstrap/address.h"
#include "tests/bootstrap/processes.h"
#include "tests/bootstrap/shared_unique_id.h"

namespace tutti::test {
namespace {

JoinOptions within(std::int64_t timeout_ms) {
  JoinOptions options;
  options.timeout_ms = timeout_ms;
  return options;
}

// Every rank contributes its rank and receives the ranks of all.
std::string exchange(Bootstrap& bootstrap) {
  std::vector<std::uint32_t> ranks(bootstrap.ranks());
  ranks[bootstrap.rank()] = bootstrap.rank() + 100;
  Status status = bootstrap.all_gather(std::as_writable_bytes(std::span(ranks)), sizeof(std::uint32_t),
                                       {Deadline::after_ms(20'000)});
  if (!status.ok()) return status.message();
  for (Rank rank = 0; rank < bootstrap.ranks(); ++rank) {
    if (ranks[rank] != rank + 100) return "record of rank " + std::to_string(rank) + " is wrong";
  }
  return "ok";
}

std::string join_and_exchange(const UniqueId& id, Rank rank, Rank ranks, const JoinOptions& options = within(20'000)) {
  Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(id, rank, ranks, options);
  return joined.ok() ? exchange(*joined.value()) : std::move(joined).status().message();
}

// The next text from the other end; empty if the connection has ended.
std::string receive_text(const Socket& socket) {
  pollfd polled = {socket.get(), POLLIN, 0};
  if (::poll(&polled, 1, 20'000) != 1) return "silence";
  char text[16];
  const ssize_t count = ::recv(socket.get(), text, sizeof text, 0);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

std::int64_t elapsed_ms(std::int64_t since_ns) { return (now_ns() - since_ns) / 1'000'000; }

class BootstrapOfProcesses : public testing::TestWithParam<Rank> {};

TEST_P(BootstrapOfProcesses, GathersAllRecords) {
  const Rank ranks = GetParam();
  const std::int64_t began = now_ns();
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (Rank rank = 0; rank < ranks; ++rank) {
    processes.start([=] { return join_and_exchange(id, rank, ranks); });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
  std::printf("%u processes: %.1f ms from before the first fork to after the last exit\n", ranks,
              static_cast<double>(now_ns() - began) * 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Sizes, BootstrapOfProcesses, testing::Values(1, 2, 3, 5, 8, 32));

TEST(Bootstrap, JoinsThreadsOfOneProcess) {
  const Meeting point;
  const UniqueId id = point.id();
  std::vector<std::string> texts(6);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 6; ++rank)
    threads.emplace_back([&, rank] { texts[rank] = join_and_exchange(id, rank, 6); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, "ok");
}

TEST(Bootstrap, DistinguishesThreadsFromProcesses) {
  const Meeting point;
  const UniqueId id = point.id();
  const auto compare = [&](Rank rank) -> std::string {
    Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(id, rank, 3, within(20'000));
    if (!joined.ok()) return std::move(joined).status().message();
    const Bootstrap& all = *joined.value();
    return std::string(all.on_same_host(2) ? "host " : "") +
           (all.peer(0).process == all.peer(1).process ? "shared " : "") +
           (all.peer(0).process == all.peer(2).process ? "all " : "") +
           (all.peer(2).pid != all.peer(0).pid ? "pids" : "");
  };
  Processes processes;
  processes.start([&] { return compare(2); });
  std::string second;
  std::thread other([&] { second = compare(1); });
  const std::string first = compare(0);
  other.join();
  EXPECT_EQ(first, "host shared pids");
  EXPECT_EQ(second, "host shared pids");
  EXPECT_EQ(processes.report(0), "host shared pids");
}

TEST(Bootstrap, ReportsMissingRanks_ToAllJoinedRanks) {
  static const Shared<std::atomic<bool>> logged;
  RendezvousOptions options = here();
  options.report_after_ms = 100;
  set_log_sink([](std::string_view line) {
    if (line.find("waiting for ranks 3, 5 of 7 to join, ") != std::string_view::npos) *logged = true;
  });
  const Meeting point(options);
  const UniqueId id = point.id();
  const std::int64_t began = now_ns();
  Processes processes;
  for (const Rank rank : {0, 1, 2, 4, 6}) {
    processes.start([=] { return join_and_exchange(id, rank, 7, within(3000)); });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ranks 3, 5 of 7 did not join within 3 s");
  EXPECT_GE(elapsed_ms(began), 2990);
  set_log_sink(nullptr);
  EXPECT_TRUE(*logged);
}

TEST(Bootstrap, RejectsDuplicateRank) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {0, 1, 1, 2}) processes.start([=] { return join_and_exchange(id, rank, 4); });
  for (const std::string& text : processes.reports()) {
    EXPECT_EQ(text.find("rank 1 was started twice: "), 0U) << text;
    EXPECT_NE(text.find(" have the same rank"), std::string::npos) << text;
  }
}

TEST(Bootstrap, RejectsDuplicateRankOfThreads) {
  const Meeting point;
  std::string texts[2];
  std::thread second([&] { texts[1] = join_and_exchange(point.id(), 1, 3); });
  texts[0] = join_and_exchange(point.id(), 1, 3);
  second.join();
  for (const std::string& text : texts) {
    EXPECT_EQ(text.find("rank 1 joined twice from one process, "), 0U) << text;
    EXPECT_NE(text.find(": pass a rank of its own to each thread"), std::string::npos) << text;
  }
}

TEST(Bootstrap, ReportsWorldSizeMismatch_ToAllRanks) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (Rank rank = 0; rank < 3; ++rank) processes.start([=] { return join_and_exchange(id, rank, rank == 2 ? 5 : 4); });
  for (const std::string& text : processes.reports()) {
    EXPECT_NE(text.find("world sizes differ: rank "), std::string::npos) << text;
    EXPECT_NE(text.find("5"), std::string::npos) << text;
    EXPECT_NE(text.find("4"), std::string::npos) << text;
  }
}

TEST(Bootstrap, NamesRankThatDied_WhileJoining) {
  static const Gate came;
  set_log_level(LogLevel::trace);
  set_log_sink([](std::string_view line) {
    if (line.find("connected: ") != std::string_view::npos) came.open();
  });
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {0, 1, 2}) processes.start([=] { return join_and_exchange(id, rank, 4); });
  for (int i = 0; i < 3; ++i) came.wait();
  processes.kill(2);
  EXPECT_EQ(processes.report(2), "killed by signal 9");
  for (const std::size_t index : {0, 1}) {
    const std::string text = processes.report(index);
    EXPECT_EQ(text.find("rank 2 ("), 0U) << text;
    EXPECT_NE(text.find("died while joining"), std::string::npos) << text;
  }
  set_log_sink(nullptr);
  set_log_level(LogLevel::warn);
}

TEST(Bootstrap, DetectsDeathOfRendezvous) {
  static const Gate came;
  set_log_level(LogLevel::trace);
  set_log_sink([](std::string_view line) {
    if (line.find("connected: ") != std::string_view::npos) came.open();
  });
  Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {0, 1}) processes.start([=] { return join_and_exchange(id, rank, 3); });
  for (int i = 0; i < 2; ++i) came.wait();
  point.kill();
  for (const std::string& text : processes.reports()) {
    EXPECT_NE(text.find(", which runs the rendezvous at 127.0.0.1:"), std::string::npos) << text;
    EXPECT_NE(text.find(", ended or went out of reach while ranks joined"), std::string::npos) << text;
  }
  set_log_sink(nullptr);
  set_log_level(LogLevel::warn);
}

TEST(Bootstrap, NamesRankThatDied_AfterJoining) {
  const Meeting point;
  const UniqueId id = point.id();
  const Gate joined, killed;
  Processes processes;
  for (Rank rank = 0; rank < 7; ++rank) {
    processes.start([=, &joined, &killed]() -> std::string {
      Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::join(id, rank, 7, within(20'000));
      if (!bootstrap.ok()) return std::move(bootstrap).status().message();
      joined.open();
      killed.wait();
      return exchange(*bootstrap.value());
    });
  }
  for (int i = 0; i < 7; ++i) joined.wait();
  processes.kill(5);
  EXPECT_EQ(processes.report(5), "killed by signal 9");
  killed.open(6);
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "rank 5 died, or left too early");
}

TEST(Bootstrap, TimesOut_DuringExchange) {
  const Meeting point;
  const UniqueId id = point.id();
  const Gate leave;
  Processes processes;
  processes.start([&]() -> std::string {
    Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::join(id, 1, 2, within(20'000));
    leave.wait();  // Does not take part.
    return bootstrap.ok() ? "ok" : "failed";
  });
  Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::join(id, 0, 2, within(20'000));
  ASSERT_TRUE(bootstrap.ok());
  Status status = bootstrap.value()->barrier({Deadline::after_ms(50)});
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_EQ(status.message(), "rank 0 waited too long for rank 1");
  leave.open();
  EXPECT_EQ(processes.report(0), "ok");
}

TEST(Bootstrap, StopsWaiting_WhenAborted) {
  const Meeting point;
  const UniqueId id = point.id();
  std::uint32_t abort = 0;
  JoinOptions options = within(20'000);
  options.abort = &abort;
  Status status;
  std::thread joiner([&] { status = Bootstrap::join(id, 0, 2, options).status(); });
  store_release(&abort, 1U);
  joiner.join();
  EXPECT_EQ(status.code(), Code::aborted);
}

TEST(Bootstrap, IgnoresUnauthenticatedClients) {
  const Meeting point;
  const UniqueId id = point.id();
  std::vector<Socket> clients;
  for (int i = 0; i < 40; ++i) {
    Result<Socket> client = connect_to({id.address, "", SOCK_STREAM});
    ASSERT_TRUE(client.ok());
    const std::string_view text = i % 3 == 0 ? "" : i % 3 == 1 ? "TiH" : "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
    if (!text.empty()) (void)!::send(client.value().get(), text.data(), text.size(), MSG_NOSIGNAL);
    clients.push_back(std::move(client).value());
  }
  Processes processes;
  for (Rank rank = 0; rank < 4; ++rank) processes.start([=] { return join_and_exchange(id, rank, 4); });
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

TEST(Bootstrap, SurvivesFloodOfSilentConnections) {
  const Meeting point;
  const UniqueId id = point.id();
  std::vector<Socket> clients;
  for (int i = 0; i < 900; ++i) clients.push_back(connect_to({id.address, "", SOCK_STREAM}).value());
  EXPECT_EQ(join_and_exchange(id, 0, 1), "ok");
}

TEST(Bootstrap, RejectsCorruptId) {
  const Meeting point;
  const UniqueId id = point.id();
  for (std::size_t byte = 0; byte < sizeof id; ++byte) {
    UniqueId damaged = id;
    reinterpret_cast<std::uint8_t*>(&damaged)[byte] ^= 0x10;
    Status status = Bootstrap::join(damaged, 0, 1, within(1000)).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << "byte " << byte << ": " << status.message();
  }
  EXPECT_EQ(join_and_exchange(id, 0, 1), "ok");
}

TEST(Bootstrap, RejectsIdThatWasUsedBefore) {
  const Meeting point;
  const UniqueId id = point.id();
  EXPECT_EQ(join_and_exchange(id, 0, 1), "ok");
  const std::string text = join_and_exchange(id, 0, 1);
  EXPECT_NE(text.find("the id was used before"), std::string::npos) << text;
  EXPECT_EQ(Bootstrap::join(id, 0, 1, within(1000)).status().code(), Code::remote);
}

TEST(Bootstrap, ReportsReason_ToLateRank) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {1, 1}) processes.start([=] { return join_and_exchange(id, rank, 3); });
  processes.reports();
  const std::string late = join_and_exchange(id, 2, 3);
  EXPECT_EQ(late.find("rank 1 was started twice: "), 0U) << late;
}

TEST(Bootstrap, ClosesConnections_InForkedChild) {
  const Meeting point;
  const UniqueId id = point.id();
  const Gate forked, done;
  Processes processes;
  processes.start([&]() -> std::string {
    Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::join(id, 1, 2, within(20'000));
    if (::fork() == 0) {  // A child that outlives its parent must not keep the parent's sockets open.
      done.wait();
      ::_exit(0);
    }
    forked.open();
    for (;;) ::pause();
  });
  Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::join(id, 0, 2, within(20'000));
  ASSERT_TRUE(bootstrap.ok());
  forked.wait();
  processes.kill(0);
  EXPECT_EQ(bootstrap.value()->barrier({Deadline::after_ms(5000)}).message(), "rank 1 died, or left too early");
  const std::vector<Socket> sockets = bootstrap.value()->take_sockets();
  EXPECT_EQ(receive_text(sockets[1]), "");
  done.open();
}

TEST(Bootstrap, ConnectsRanksOfHost_BySockets) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  processes.start([=]() -> std::string {
    Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::join(id, 1, 2, within(20'000));
    if (!bootstrap.ok()) return std::move(bootstrap).status().message();
    const std::vector<Socket> sockets = bootstrap.value()->take_sockets();
    (void)!::send(sockets[0].get(), "from 1", 6, MSG_NOSIGNAL);
    return receive_text(sockets[0]);
  });
  Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::join(id, 0, 2, within(20'000));
  ASSERT_TRUE(bootstrap.ok());
  const std::vector<Socket> sockets = bootstrap.value()->take_sockets();
  EXPECT_FALSE(sockets[0]);
  EXPECT_EQ(::send(sockets[1].get(), "from 0", 6, MSG_NOSIGNAL), 6);
  EXPECT_EQ(receive_text(sockets[1]), "from 1");
  EXPECT_EQ(processes.report(0), "from 0");
}

// Rank 0 fails and exits. Rank 2 detects the failure separately, and forwards the reason to rank 3.
TEST(Bootstrap, ReportsLaterFailure_ToAllRanks) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (Rank rank = 0; rank < 4; ++rank) {
    processes.start([=]() -> std::string {
      Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(id, rank, 4, within(20'000));
      if (!joined.ok()) return std::move(joined).status().message();
      Status own;
      if (rank == 0) own = Status(Code::system, "no memory");
      if (rank == 2) own = remote_error("rank 0 died");
      return joined.value()->agree(std::move(own), {Deadline::after_ms(20'000)}).message();
    });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "no memory; while rank 0 was joining");
}

TEST(Bootstrap, Succeeds_WhenRanksAgree) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (Rank rank = 0; rank < 3; ++rank) {
    processes.start([=]() -> std::string {
      Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(id, rank, 3, within(20'000));
      if (!joined.ok()) return std::move(joined).status().message();
      return joined.value()->agree({}, {Deadline::after_ms(20'000)}).ok() ? exchange(*joined.value()) : "failed";
    });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

}  // namespace
}  // namespace tutti::test
