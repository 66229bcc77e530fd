#include "src/communicator/joining/probe.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "src/base/clock.h"

namespace tutti {
namespace {

constexpr std::uint64_t kMessageBytes = 8;
constexpr int kMessages = 9;
constexpr std::uint64_t kShortBytes = 32 << 10;
constexpr std::uint64_t kLongBytes = 768 << 10;  // By a host. More than a limit of the rate lets through at once.
constexpr double kLongUs = 20'000;  // Who takes that long for the short stream, or for long ones, sends no more.
constexpr int kStreams = 3;         // The first warms up.
constexpr std::int64_t kSpinNs = 50'000;

// Fixed-width plain data: it travels.
struct ProbeRecord {
  double us = 0;
  std::uint64_t takes_part = 0;
};
static_assert(sizeof(ProbeRecord) == 16);

// Whom a rank sends to, and who sends to it, on the hosts before and after; null: it has no part.
struct Ring {
  const Wire* next = nullptr;
  const Wire* previous = nullptr;
  std::uint32_t turn = 0;   // Among the ranks of its host.
  std::uint32_t ranks = 0;  // Of each host that have a part.
};

Ring ring_of(const Hosts& hosts, Rank self, std::span<const Wire> wires) {
  std::vector<std::vector<Rank>> members;
  std::size_t own = 0;
  Ring ring;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    if (hosts.leader_of(rank) == rank) members.emplace_back();
    const auto host = std::find_if(members.begin(), members.end(), [&](const std::vector<Rank>& ranks) {
      return ranks.empty() || hosts.share(ranks[0], rank);
    });
    if (rank == self) own = static_cast<std::size_t>(host - members.begin());
    if (rank == self) ring.turn = static_cast<std::uint32_t>(host->size());
    host->push_back(rank);
  }
  std::size_t least = members[0].size();
  for (const std::vector<Rank>& ranks : members) least = std::min(least, ranks.size());
  ring.ranks = static_cast<std::uint32_t>(least);
  if (ring.turn >= least) return ring;
  ring.next = &wires[members[(own + 1) % members.size()][ring.turn]];
  ring.previous = &wires[members[(own + members.size() - 1) % members.size()][ring.turn]];
  return ring;
}

// Sends and receives so many bytes at once.
class Exchange {
 public:
  Exchange(const Ring& ring, std::uint64_t bytes) : ring_(ring), to_send_(bytes), to_receive_(bytes) {}

  Status run(std::span<std::byte> room, const Watch& watch) {
    const std::int64_t began_ns = now_ns();
    while (to_send_ + to_receive_ > 0) {
      const bool moved = TUTTI_TRY(advance(room));
      if (moved) continue;
      if (watch.aborted()) return aborted_error("aborted while joining");
      if (watch.deadline.passed()) return timeout_error("nothing came over " + ring_.previous->route);
      if (now_ns() - began_ns < kSpinNs) {
        ::sched_yield();
        continue;
      }
      pollfd polled[] = {{ring_.previous->socket.get(), static_cast<short>(to_receive_ > 0 ? POLLIN : 0), 0},
                         {ring_.next->socket.get(), static_cast<short>(to_send_ > 0 ? POLLOUT : 0), 0}};
      ::poll(polled, 2, watch.poll_ms());
    }
    return {};
  }

 private:
  // Of the peer's end, or of the way: if a rank has died, those that it met in the tree know.
  static Status lost(const Wire& wire, const char* why) {
    return remote_error("the connection " + wire.route + " was lost while joining: " + why);
  }

  Result<bool> advance(std::span<std::byte> room) {
    bool moved = false;
    if (to_send_ > 0) {
      const auto sent = ::send(ring_.next->socket.get(), room.data(), std::min<std::uint64_t>(room.size(), to_send_),
                               MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return lost(*ring_.next, std::strerror(errno));
      if (sent > 0) to_send_ -= static_cast<std::uint64_t>(sent);
      moved = sent > 0;
    }
    if (to_receive_ > 0) {
      const auto received = ::recv(ring_.previous->socket.get(), room.data(),
                                   std::min<std::uint64_t>(room.size(), to_receive_), MSG_DONTWAIT);
      if (received == 0) return lost(*ring_.previous, "it was closed");
      if (received < 0 && errno != EAGAIN && errno != EINTR) return lost(*ring_.previous, std::strerror(errno));
      if (received > 0) to_receive_ -= static_cast<std::uint64_t>(received);
      moved = moved || received > 0;
    }
    return moved;
  }

  const Ring& ring_;
  std::uint64_t to_send_, to_receive_;
};

class Probe {
 public:
  Probe(Bootstrap& bootstrap, const Ring& ring, const Watch& watch)
      : bootstrap_(bootstrap), ring_(ring), watch_(watch), room_(kShortBytes) {}

  // The least of the streams but the first, if there are others.
  Result<double> stream_us(std::uint64_t bytes, bool all) {
    double least = TUTTI_TRY(slowest_us(bytes, 1, all)), spent = least;
    for (int i = 1; i < kStreams && spent < kLongUs; ++i) {
      const double us = TUTTI_TRY(slowest_us(bytes, 1, all));
      least = i == 1 ? us : std::min(least, us);
      spent += us;
    }
    return least;
  }

  // The median of so many exchanges, of the rank that takes longest. Of the first ranks of the hosts, or of all.
  Result<double> slowest_us(std::uint64_t bytes, int times, bool all) {
    const bool takes_part = ring_.next != nullptr && (all || ring_.turn == 0);
    std::vector<double> took_us(static_cast<std::size_t>(times));
    Status own;
    for (std::size_t i = 0; takes_part && own.ok() && i < took_us.size(); ++i) {
      const std::int64_t began_ns = now_ns();
      own = Exchange(ring_, bytes).run(room_, watch_);
      took_us[i] = static_cast<double>(now_ns() - began_ns) / 1000;
    }
    if (!own.ok()) hang_up();
    TUTTI_CHECK_OK(bootstrap_.agree(std::move(own), watch_));
    std::nth_element(took_us.begin(), took_us.begin() + times / 2, took_us.end());
    std::vector<ProbeRecord> records(bootstrap_.ranks());
    records[bootstrap_.rank()] = {took_us[static_cast<std::size_t>(times / 2)], takes_part ? 1U : 0U};
    TUTTI_CHECK_OK(bootstrap_.all_gather(std::as_writable_bytes(std::span(records)), sizeof(ProbeRecord), watch_));
    double slowest = 1e-3;
    for (const ProbeRecord& record : records) slowest = std::max(slowest, record.us);
    return slowest;
  }

 private:
  // Neighbours that wait for this rank hear at once that nothing will come.
  void hang_up() const {
    ::shutdown(ring_.next->socket.get(), SHUT_RDWR);
    ::shutdown(ring_.previous->socket.get(), SHUT_RDWR);
  }

  Bootstrap& bootstrap_;
  const Ring& ring_;
  const Watch& watch_;
  std::vector<std::byte> room_;
};

Result<bool> wanted_by_all(Bootstrap& bootstrap, bool wanted, const Watch& watch) {
  std::vector<ProbeRecord> records(bootstrap.ranks());
  records[bootstrap.rank()].takes_part = wanted ? 1 : 0;
  TUTTI_CHECK_OK(bootstrap.all_gather(std::as_writable_bytes(std::span(records)), sizeof(ProbeRecord), watch));
  return std::all_of(records.begin(), records.end(), [](const ProbeRecord& record) { return record.takes_part == 1; });
}

double gbytes_per_s(double bytes, double us) { return bytes / (us * 1000); }

// In steps of the root of 2, so that runs that see almost the same choose alike.
double stepped(double value) { return std::exp2(std::round(2 * std::log2(value)) / 2); }

}  // namespace

Result<std::optional<NetworkFigures>> probe_network(Bootstrap& bootstrap, const Hosts& hosts,
                                                    std::span<const Wire> wires, bool wanted, const Watch& watch) {
  if (hosts.share_one()) return std::optional<NetworkFigures>();
  const bool agreed = TUTTI_TRY(wanted_by_all(bootstrap, wanted, watch));
  if (!agreed) return std::optional<NetworkFigures>();
  const Ring ring = ring_of(hosts, bootstrap.rank(), wires);
  Probe probe(bootstrap, ring, watch);
  NetworkFigures figures;
  figures.message_us = TUTTI_TRY(probe.slowest_us(kMessageBytes, kMessages, false));
  std::uint64_t bytes = kShortBytes;
  double us = TUTTI_TRY(probe.slowest_us(bytes, 1, false));
  if (us < kLongUs) {
    bytes = kLongBytes;
    us = TUTTI_TRY(probe.stream_us(bytes, false));
  }
  const double of_rank = gbytes_per_s(static_cast<double>(bytes), us);
  double of_host = of_rank;
  if (ring.ranks > 1) {
    bytes = std::max<std::uint64_t>(bytes / ring.ranks, 1);
    us = TUTTI_TRY(probe.stream_us(bytes, true));
    of_host = gbytes_per_s(static_cast<double>(bytes) * ring.ranks, us);
  }
  figures.rank_gbytes_per_s = stepped(std::min(of_rank, of_host));
  figures.host_gbytes_per_s = stepped(of_host);
  figures.message_us = stepped(figures.message_us);
  return std::optional(figures);
}

std::string describe(const NetworkFigures& figures) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(),
                "between hosts a message takes %.3g us, a rank sends %.3g GB/s, a host %.3g GB/s", figures.message_us,
                figures.rank_gbytes_per_s, figures.host_gbytes_per_s);
  return text.data();
}

}  // namespace tutti
