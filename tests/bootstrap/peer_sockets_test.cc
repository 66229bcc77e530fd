// Ranks that count as separate hosts: each pair of them has one authenticated TCP connection.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>

#include "src/base/log.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/rendezvous_thread.h"
#include "tests/bootstrap/processes.h"
#include "tests/bootstrap/shared_unique_id.h"

namespace tutti::test {
namespace {

JoinOptions apart(std::int64_t timeout_ms = 60'000) {
  JoinOptions options;
  options.timeout_ms = timeout_ms;
  options.one_host_per_rank = true;
  return options;
}

// The first message of each end of a connection.
struct Word {
  Rank from = 0, to = 0;
  std::uint32_t opened_by_us = 0;
  Secret session{};
};

std::string receive_word(const PeerSocket& link, Word& word) {
  std::size_t received = 0;
  while (received < sizeof word) {
    pollfd polled = {link.socket.get(), POLLIN, 0};
    if (::poll(&polled, 1, 60'000) != 1) return "silence on " + link.route;
    const ssize_t count =
        ::recv(link.socket.get(), reinterpret_cast<char*>(&word) + received, sizeof word - received, 0);
    if (count <= 0) return "the end of " + link.route;
    received += static_cast<std::size_t>(count);
  }
  return "";
}

std::string send_word(const PeerSocket& link, const Word& word) {
  const ssize_t count = ::send(link.socket.get(), &word, sizeof word, MSG_NOSIGNAL);
  return count == sizeof word ? "" : "cannot send on " + link.route;
}

std::string talk(Bootstrap& bootstrap) {
  const Rank self = bootstrap.rank();
  const std::vector<PeerSocket> peer_sockets = bootstrap.take_peer_sockets();
  const std::vector<Socket> sockets = bootstrap.take_sockets();
  for (Rank peer = 0; peer < bootstrap.ranks(); ++peer) {
    const PeerSocket& link = peer_sockets[peer];
    if (sockets[peer]) return "a unix socket to rank " + std::to_string(peer);
    if (bootstrap.on_same_host(peer) != (peer == self)) return "rank " + std::to_string(peer) + " is on the wrong host";
    if (bool(link.socket) == (peer == self)) return "a socket too many or too few to rank " + std::to_string(peer);
    if (peer == self) continue;
    if (std::string wrong = send_word(link, {self, peer, link.opened_by_us, link.session}); !wrong.empty())
      return wrong;
  }
  for (Rank peer = 0; peer < bootstrap.ranks(); ++peer) {
    const PeerSocket& link = peer_sockets[peer];
    if (peer == self) continue;
    Word word;
    if (std::string wrong = receive_word(link, word); !wrong.empty()) return wrong;
    const bool right = word.from == peer && word.to == self && link.opened_by_us == (peer < self) &&
                       link.opened_by_us != (word.opened_by_us != 0) && word.session == link.session;
    if (!right) return "rank " + std::to_string(word.from) + " at the other end of " + link.route;
  }
  return "ok";
}

std::string join_and(const std::function<std::string(Bootstrap&)>& work, const UniqueId& id, const Claim& claim,
                     const JoinOptions& options = apart()) {
  Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(id, claim.rank, claim.ranks, options);
  return joined.ok() ? work(*joined.value()) : std::move(joined).status().message();
}

Claim rank_of(Rank rank, Rank ranks) { return {Role::join, rank, ranks, kRendezvous}; }

class PeerSocketsOfProcesses : public testing::TestWithParam<Rank> {};

TEST_P(PeerSocketsOfProcesses, ConnectEachPair) {
  const Rank ranks = GetParam();
  const Meeting point;
  const UniqueId id = point.id();
  const std::int64_t began = now_ns();
  Processes processes;
  for (Rank rank = 0; rank < ranks; ++rank) {
    processes.start([=] { return join_and(talk, id, rank_of(rank, ranks)); });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
  std::printf("%u processes apart: %.1f ms\n", ranks, static_cast<double>(now_ns() - began) * 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PeerSocketsOfProcesses, testing::Values(1, 2, 3, 8, 64));

std::string settings(Bootstrap& bootstrap) {
  const PeerSocket link = std::move(bootstrap.take_peer_sockets()[1 - bootstrap.rank()]);
  const auto option = [&link](int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    ::getsockopt(link.socket.get(), level, name, &value, &length);
    return value;
  };
  const bool waits = (::fcntl(link.socket.get(), F_GETFL) & O_NONBLOCK) == 0;
  return std::to_string(option(IPPROTO_TCP, TCP_NODELAY)) + std::to_string(option(SOL_SOCKET, SO_KEEPALIVE)) +
         std::to_string(option(IPPROTO_TCP, TCP_USER_TIMEOUT)) + (waits ? " waits" : "");
}

// The caller's deadline for connecting must not end the connection to a peer that reads nothing for a while.
TEST(PeerSockets, HaveNoDelayAndNoTimeout) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {0, 1}) processes.start([=] { return join_and(settings, id, rank_of(rank, 2)); });
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "110");
}

std::string route(Bootstrap& bootstrap) {
  const Rank peer = 1 - bootstrap.rank();
  const PeerSocket link = std::move(bootstrap.take_peer_sockets()[peer]);
  const std::string right = describe(local_address(link.socket).value()) + " (lo) -> " +
                            describe(peer_address(link.socket).value()) + " on " + hostname_of(bootstrap.peer(peer));
  return link.route == right ? link.route : link.route + " instead of " + right;
}

TEST(PeerSockets, ReportRoute) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  JoinOptions options = apart();
  options.socket_ifname = "=lo";
  for (const Rank rank : {0, 1}) processes.start([=] { return join_and(route, id, rank_of(rank, 2), options); });
  for (const std::string& text : processes.reports()) {
    EXPECT_EQ(text.find("127.0.0.1:"), 0U) << text;
    EXPECT_EQ(text.find("instead of"), std::string::npos) << text;
  }
}

TEST(PeerSockets, WorkOverIpv6) {
  Address loopback;
  loopback.family = 6;
  loopback.bytes[15] = 1;
  if (!listen_at({loopback, "", SOCK_STREAM}).ok()) GTEST_SKIP() << "this host has no IPv6";
  const Meeting point([&] { return start_rendezvous(here(), loopback, std::nullopt); });
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {0, 1}) processes.start([=] { return join_and(route, id, rank_of(rank, 2)); });
  for (const std::string& text : processes.reports()) {
    EXPECT_EQ(text.find("[::1]:"), 0U) << text;
    EXPECT_EQ(text.find("instead of"), std::string::npos) << text;
  }
}

TEST(PeerSockets, AreNotMade_BetweenRanksOfOneHost) {
  const Meeting point;
  const UniqueId id = point.id();
  JoinOptions together = apart();
  together.one_host_per_rank = false;
  Processes processes;
  for (const Rank rank : {0, 1}) {
    const auto count = [](Bootstrap& bootstrap) {
      const std::vector<PeerSocket> peer_sockets = bootstrap.take_peer_sockets();
      const auto connected =
          std::count_if(peer_sockets.begin(), peer_sockets.end(), [](const PeerSocket& w) { return bool(w.socket); });
      return std::to_string(peer_sockets.size()) + " sockets, " + std::to_string(connected) + " connected";
    };
    processes.start([=] { return join_and(count, id, rank_of(rank, 2), together); });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "2 sockets, 0 connected");
}

TEST(PeerSockets, AreMade_WhenAnyRankNeedsThem) {
  for (const Rank other : {0, 2}) {
    const Meeting point;
    const UniqueId id = point.id();
    Processes processes;
    for (const Rank rank : {0, 1, 2}) {
      JoinOptions options = apart();
      options.one_host_per_rank = rank != other;
      processes.start([=] { return join_and(talk, id, rank_of(rank, 3), options); });
    }
    for (const std::string& text : processes.reports()) {
      EXPECT_NE(text.find(") selects a network transport (TUTTI_TRANSPORT or options.tuning->transport), but rank "),
                std::string::npos)
          << text;
      EXPECT_NE(text.find("the transport must match on all ranks"), std::string::npos) << text;
    }
  }
}

std::string offers(Bootstrap& bootstrap) {
  std::string text;
  for (const RemoteOffer& offer : bootstrap.remote_offers()) text += "[" + offer.carrier + "|" + offer.why_none + "]";
  return text;
}

TEST(PeerSockets, CarryOfferOfEachRank) {
  const Meeting point;
  const UniqueId id = point.id();
  const std::string long_reason(kMaxWhyBytes + 100, 'x');
  Processes processes;
  for (const Rank rank : {0, 1, 2}) {
    JoinOptions options = apart();
    if (rank == 0) options.remote_offer = [] { return RemoteOffer{"verbs", ""}; };
    if (rank == 1) options.remote_offer = [&] { return RemoteOffer{"", long_reason}; };
    processes.start([=] { return join_and(offers, id, rank_of(rank, 3), options); });
  }
  for (const std::string& text : processes.reports())
    EXPECT_EQ(text, "[verbs|][|" + long_reason.substr(0, kMaxWhyBytes - 3) + "...][|]");
}

// Querying devices takes time, so ranks of one host skip it.
TEST(PeerSockets, DoNotQueryOffer_OnOneHost) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {0, 1}) {
    processes.start([=] {
      bool requested = false;
      JoinOptions options = apart();
      options.one_host_per_rank = false;
      options.remote_offer = [&requested] {
        requested = true;
        return RemoteOffer{};
      };
      return join_and([&requested](Bootstrap& b) { return offers(b) + (requested ? "asked" : "not asked"); }, id,
                      rank_of(rank, 2), options);
    });
  }
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "not asked");
}

// Function that a joining rank runs as soon as it logs `words`.
std::function<void(std::string_view)> distraction;
std::string_view words;

std::string join_distracted(std::string_view at, const std::function<void(std::string_view)>& by, const UniqueId& id,
                            const Claim& claim, const JoinOptions& options = apart()) {
  words = at;
  distraction = by;
  set_log_level(LogLevel::trace);
  set_log_sink([](std::string_view line) {
    const std::size_t found = line.find(words);
    if (found != std::string_view::npos) distraction(line.substr(found + words.size()));
  });
  return join_and(talk, id, claim, options);
}

constexpr std::string_view kListens = "awaits ranks of other hosts at ";  // Before it has sent its address.
constexpr std::string_view kConnects =
    "connects to 2 ranks of other hosts";  // Before it has connected to another rank.

// Rank 0 of three is distracted; returns the reports of the others.
std::vector<std::string> reports_of_others(std::string_view at, const std::function<void(std::string_view)>& by,
                                           const JoinOptions& options = apart()) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {1, 2}) processes.start([=] { return join_and(talk, id, rank_of(rank, 3), options); });
  processes.start([&] { return join_distracted(at, by, id, rank_of(0, 3), options); });
  return {processes.report(0), processes.report(1)};
}

void expect_named(const std::string& text) {
  EXPECT_NE(text.find(", lo) called rank 0 ("), std::string::npos) << text;
  EXPECT_NE(text.find(", lo) over TCP at 127.0.0.1:"), std::string::npos) << text;
  EXPECT_NE(text.find("firewall"), std::string::npos) << text;
  EXPECT_NE(text.find("TUTTI_SOCKET_IFNAME"), std::string::npos) << text;
}

// Behaves like a firewall that rejects connections.
TEST(PeerSockets, NameRefusedConnection_OnAllRanks) {
  const auto stop_listening = [](std::string_view) {
    for (int file = 3; file < 256; ++file) {
      int listens = 0;
      socklen_t length = sizeof listens;
      const bool requested = ::getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0;
      if (requested && listens != 0) ::shutdown(file, SHUT_RD);
    }
  };
  for (const std::string& text : reports_of_others(kListens, stop_listening)) {
    EXPECT_NE(text.find("Connection refused; while rank "), std::string::npos) << text;
    expect_named(text);
  }
}

// The error is reported before the rendezvous times out, which could not name the connection.
TEST(PeerSockets, NameUnansweredConnection_OnAllRanks) {
  const auto sleep = [](std::string_view) {
    for (;;) ::pause();
  };
  for (const std::string& text : reports_of_others(kConnects, sleep, apart(4000))) {
    EXPECT_EQ(text.find("no answer; while rank "), 0U) << text;
    expect_named(text);
  }
}

TEST(PeerSockets, Fail_WhenRankDies) {
  const auto die = [](std::string_view) { ::raise(SIGKILL); };
  for (const std::string& text : reports_of_others(kConnects, die)) {
    EXPECT_EQ(text.find("rank 0 ("), 0U) << text;
    EXPECT_NE(text.find(") died while joining"), std::string::npos) << text;
  }
}

std::vector<Socket> unauthenticated_clients;

void call_as_unauthenticated_clients(std::string_view endpoint) {
  const std::size_t colon = endpoint.find(':');
  Address address = loopback_address();
  address.port = static_cast<std::uint16_t>(std::stoi(std::string(endpoint.substr(colon + 1))));
  for (int i = 0; i < 40; ++i) {
    unauthenticated_clients.push_back(connect_to({address, "", SOCK_STREAM}).value());
    const std::string_view text = i % 3 == 0 ? "" : i % 3 == 1 ? "TiH" : "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
    if (!text.empty() && ::send(unauthenticated_clients.back().get(), text.data(), text.size(), MSG_NOSIGNAL) < 0)
      std::abort();
  }
}

TEST(PeerSockets, IgnoreUnauthenticatedClients) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {1, 2}) processes.start([=] { return join_and(talk, id, rank_of(rank, 3)); });
  processes.start([&] {
    const std::string text = join_distracted(kListens, call_as_unauthenticated_clients, id, rank_of(0, 3));
    return unauthenticated_clients.size() == 40 ? text : "not all clients have called";
  });
  for (const std::string& text : processes.reports()) EXPECT_EQ(text, "ok");
}

TEST(PeerSockets, RequireNamedInterface) {
  const Meeting point;
  const UniqueId id = point.id();
  Processes processes;
  for (const Rank rank : {0, 1, 2}) {
    JoinOptions options = apart();
    if (rank == 1) options.socket_ifname = "=none0";
    processes.start([=] { return join_and(talk, id, rank_of(rank, 3), options); });
  }
  for (const std::string& text : processes.reports()) {
    EXPECT_NE(text.find("is called =none0 (TUTTI_SOCKET_IFNAME"), std::string::npos) << text;
    EXPECT_NE(text.find("; while rank 1 ("), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tutti::test
