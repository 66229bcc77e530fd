// Ranks and a rendezvous that do not answer, or reject each other.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/bootstrap.h"
#include "tests/bootstrap/processes.h"
#include "tests/bootstrap/shared_unique_id.h"

namespace tutti::test {
namespace {

std::string join(const UniqueId& id, Rank rank, Rank ranks, std::int64_t timeout_ms) {
  JoinOptions options;
  options.timeout_ms = timeout_ms;
  return Bootstrap::join(id, rank, ranks, options).status().message();
}

// Two of three ranks have joined.
std::atomic<bool>& two_have_joined() {
  static const Shared<std::atomic<bool>> logged;
  return *logged;
}

RendezvousOptions note_when_two_have_joined() {
  two_have_joined() = false;
  set_log_sink([](std::string_view line) {
    if (line.find("waiting for rank 2 of 3 to join") != std::string_view::npos) two_have_joined() = true;
  });
  RendezvousOptions options = here();
  options.report_after_ms = 50;
  return options;
}

void await_two_ranks() {
  const Deadline deadline = Deadline::after_ms(60'000);
  while (!two_have_joined() && !deadline.passed()) ::poll(nullptr, 0, 1);
  set_log_sink(nullptr);
  ASSERT_TRUE(two_have_joined());
}

TEST(Bootstrap, NamesRank_WhenStoppedAfterJoining) {
  const Meeting point(note_when_two_have_joined());
  const UniqueId id = point.id();
  Processes processes;
  const auto start = [&](Rank rank) { processes.start([=] { return join(id, rank, 3, 3000); }); };
  start(0);
  start(1);
  await_two_ranks();
  processes.stop(1);
  start(2);
  for (const std::size_t rank : {0, 2})
    EXPECT_EQ(processes.report(rank),
              "rank 1 of 3 joined, but did not answer within 3 s: stopped, overloaded or out of reach");
}

TEST(Bootstrap, LogsRank_WhenStoppedAfterJoining_WithoutTimeout) {
  static const Shared<std::atomic<bool>> named;
  const RendezvousOptions options = note_when_two_have_joined();
  set_log_sink([](std::string_view line) {
    if (line.find("waiting for rank 2 of 3 to join") != std::string_view::npos) two_have_joined() = true;
    if (line.find("waiting for ranks 0, 1, 2 of 3 to reach the others") != std::string_view::npos) *named = true;
  });
  const Meeting point(options);
  const UniqueId id = point.id();
  Processes processes;
  const auto start = [&](Rank rank) { processes.start([=] { return join(id, rank, 3, -1); }); };
  start(0);
  start(1);
  const Deadline deadline = Deadline::after_ms(60'000);
  while (!two_have_joined() && !deadline.passed()) ::poll(nullptr, 0, 1);
  processes.stop(1);
  start(2);
  while (!*named && !deadline.passed()) ::poll(nullptr, 0, 1);
  set_log_sink(nullptr);
  EXPECT_TRUE(*named);
}

// Starts `first` of three ranks, which runs the rendezvous, and the other one of ranks 0 and 1. Waits until both have
// joined. Their processes have the numbers 0 and 1.
void start_rendezvous_and_another(Processes& processes, Rank first, std::int64_t timeout_ms) {
  const RendezvousOptions options = note_when_two_have_joined();
  const Shared<UniqueId> id;
  const Gate made;
  processes.start([&] {
    *id = make_unique_id(options).value();
    made.open();
    return join(*id, first, 3, timeout_ms);
  });
  made.wait();
  processes.start([&] { return join(*id, 1 - first, 3, timeout_ms); });
  await_two_ranks();
}

// The rendezvous no longer reports anything.
TEST(Bootstrap, NamesRankZero_WhenStoppedWithRendezvous) {
  Processes processes;
  start_rendezvous_and_another(processes, 0, 2000);
  processes.stop(0);
  const std::string text = processes.report(1);
  EXPECT_EQ(text.find("rank 0 ("), 0U) << text;
  EXPECT_NE(text.find("which runs the rendezvous at 127.0.0.1:"), std::string::npos) << text;
  EXPECT_NE(text.find("does not answer: stopped, overloaded or out of reach"), std::string::npos) << text;
}

// Rank 1 ends before rank 2 joins.
TEST(Bootstrap, NamesRankOfRendezvousThatDied) {
  Processes processes;
  start_rendezvous_and_another(processes, 1, 20'000);
  processes.kill(0);
  const std::string text = processes.report(1);
  EXPECT_EQ(text.find("rank 1 ("), 0U) << text;
  EXPECT_NE(text.find(", which runs the rendezvous at 127.0.0.1:"), std::string::npos) << text;
  EXPECT_NE(text.find(", ended or went out of reach while ranks joined"), std::string::npos) << text;
}

// Ranks of one host reject connections of another user.
TEST(Bootstrap, NamesBothUsers_WhenRanksOfHostHaveSeveral) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can start ranks of another user";
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {0, 1}) {
    processes.start([=]() -> std::string {
      if (rank == 1 && ::setuid(65'534) != 0) return "setuid failed";
      return join(id, rank, 2, 20'000);
    });
  }
  for (const std::string& text : processes.reports()) {
    EXPECT_NE(text.find("rank 1 (user id 65534) called rank 0 (user id 0): ranks of one host must belong to one user, "
                        "unless TUTTI_TRANSPORT=tcp is set on all ranks"),
              std::string::npos)
        << text;
  }
}

// The port drops connection requests, as behind a firewall: its queue is full, and nothing accepts.
TEST(Bootstrap, SuggestsFirewalls_WhenRendezvousIsUnreachable) {
  const Socket listener = listen_at({loopback_address(), "", SOCK_STREAM}).value();
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const Address address = local_address(listener).value();
  std::vector<Socket> queued;
  for (int i = 0; i < 4; ++i) queued.push_back(connect_to({address, "", SOCK_STREAM}).value());
  const std::string text = join(generate_unique_id(address).value(), 1, 2, 60'000);
  EXPECT_NE(text.find("Connection timed out"), std::string::npos) << text;
  EXPECT_NE(text.find("allow TCP between the hosts on all ports"), std::string::npos) << text;
  EXPECT_EQ(text.find("the id was used before"), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti::test
