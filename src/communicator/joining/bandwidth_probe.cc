#include "src/communicator/joining/bandwidth_probe.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "src/base/clock.h"

namespace tutti {
namespace {

constexpr double kSpinUs = 50;
// Minimum number of acknowledgments in the later half before a stream may end.
constexpr std::ptrdiff_t kMinArrivals = 4;
// Sleep of a sender whose window grows with arrivals, since arrivals do not wake it.
constexpr std::int64_t kNapNs = 100'000;
constexpr std::size_t kRoomBytes = 32 << 10;
constexpr std::byte kGoesOn{0}, kLast{1};  // Values of all bytes of a unit.

class Exchange {
 public:
  Exchange(const StreamRing& ring, const StreamLimits& limits)
      : ring_(ring),
        limits_(limits),
        going_on_(std::max<std::size_t>(kRoomBytes, limits.unit_bytes), kGoesOn),
        last_(limits.unit_bytes, kLast),
        room_(kRoomBytes) {}

  Result<Streamed> run(const Watch& watch) {
    double moved_us = 0;
    arrived_.push_back({0, 0});
    while (!all_sent_ || !all_came_) {
      const double elapsed = elapsed_us();
      const bool sent = TUTTI_TRY(send(elapsed));
      const bool received = TUTTI_TRY(receive());
      if (sent || received) {
        moved_us = elapsed;
        continue;
      }
      if (watch.aborted()) return aborted_error("aborted while joining");
      if (watch.deadline.passed()) return timeout_error("nothing arrived over " + ring_.previous->route);
      if (elapsed - moved_us < kSpinUs) ::sched_yield();
      else sleep(watch);
    }
    return seen();
  }

 private:
  struct Arrival {
    double us;            // Time since the start of the stream.
    std::uint64_t bytes;  // Total received by then.
  };

  // The peer or the network failed. If a rank died, its peers in the bootstrap tree report it.
  static Status lost(const PeerSocket& link, const char* why) {
    return remote_error("the connection " + link.route + " was lost while joining: " + why);
  }

  // Returns whether enough data was acknowledged in the later half, without a long gap. A slow link shows its rate only
  // after it has carried what its limiter held back. Gaps mean that this rank, or a process that forwards its messages,
  // was not running.
  bool is_over(double elapsed_us) const {
    if (elapsed_us < limits_.min_us || elapsed_us >= limits_.max_us) return elapsed_us >= limits_.max_us;
    const Arrival* at_half = &at(acknowledged_, elapsed_us / 2);
    const Arrival* const last = &acknowledged_.back();
    if (last - at_half < kMinArrivals || last->bytes - at_half->bytes < limits_.window_bytes) return false;
    double silence_us = elapsed_us - last->us;
    for (const Arrival* one = at_half; one != last; ++one) silence_us = std::max(silence_us, (one + 1)->us - one->us);
    return silence_us <= elapsed_us / 6;
  }

  // Returns the last arrival before `us`.
  static const Arrival& at(const std::vector<Arrival>& arrivals, double us) {
    const auto later = std::find_if(arrivals.begin(), arrivals.end(), [&](const Arrival& one) { return one.us > us; });
    return later == arrivals.begin() ? *later : *(later - 1);
  }

  // Begins a run of whole units, or the last unit alone. SIOCOUTQ returns the number of bytes in flight.
  void begin_run(double elapsed_us) {
    int queued = 0;
    if (::ioctl(ring_.next->socket.get(), SIOCOUTQ, &queued) != 0) queued = 0;
    const std::uint64_t on_the_way = std::min<std::uint64_t>(static_cast<std::uint64_t>(queued), sent_);
    if (acknowledged_.empty() || acknowledged_.back().bytes != sent_ - on_the_way)
      acknowledged_.push_back({elapsed_us, sent_ - on_the_way});
    const std::uint64_t left = limits_.max_bytes - sent_;
    ends_ = left <= limits_.unit_bytes || is_over(elapsed_us);
    if (ends_) {
      in_run_ = limits_.unit_bytes;
      return;
    }
    const std::uint64_t gone = limits_.gone_bytes + sent_ - on_the_way;
    const std::uint64_t beyond = std::max(gone, limits_.slack_bytes) - limits_.slack_bytes;
    const auto grown = static_cast<std::uint64_t>(static_cast<double>(beyond) * limits_.growth);
    const std::uint64_t window = std::max(limits_.window_bytes, grown);
    const std::uint64_t free = std::max(window, on_the_way) - on_the_way;
    // Sends in several runs. Otherwise acknowledgments, which travel with data of the other direction, would wait for a
    // whole window.
    const std::uint64_t part = std::max(window / 4, 2 * limits_.unit_bytes);
    const std::uint64_t max = std::min({free, part, left - limits_.unit_bytes, std::uint64_t{going_on_.size()}});
    in_run_ = max / limits_.unit_bytes * limits_.unit_bytes;
  }

  Result<bool> send(double elapsed_us) {
    if (all_sent_) return false;
    if (in_run_ == 0) begin_run(elapsed_us);
    full_ = false;
    if (in_run_ == 0) return false;
    const std::byte* const from = ends_ ? last_.data() : going_on_.data();
    const auto sent = ::send(ring_.next->socket.get(), from, in_run_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return lost(*ring_.next, std::strerror(errno));
    full_ = sent < 0;
    if (sent <= 0) return false;
    in_run_ -= static_cast<std::uint64_t>(sent);
    sent_ += static_cast<std::uint64_t>(sent);
    all_sent_ = ends_ && in_run_ == 0;
    return true;
  }

  Result<bool> receive() {
    if (all_came_) return false;
    // Reads at most the rest of this stream, since the next stream may follow at once.
    const std::size_t max = std::min<std::uint64_t>(room_.size(), limits_.max_bytes - arrived_.back().bytes);
    const auto received = ::recv(ring_.previous->socket.get(), room_.data(), max, MSG_DONTWAIT);
    if (received == 0) return lost(*ring_.previous, "it was closed");
    if (received < 0 && errno != EAGAIN && errno != EINTR) return lost(*ring_.previous, std::strerror(errno));
    if (received < 0) return false;
    arrived_.push_back({elapsed_us(), arrived_.back().bytes + static_cast<std::uint64_t>(received)});
    const bool whole = arrived_.back().bytes % limits_.unit_bytes == 0;
    all_came_ = whole && room_[static_cast<std::size_t>(received) - 1] == kLast;
    return true;
  }

  // Sleeps only briefly if more data may be sent before an event on the sockets.
  void sleep(const Watch& watch) const {
    pollfd polled[] = {{ring_.previous->socket.get(), static_cast<short>(all_came_ ? 0 : POLLIN), 0},
                       {ring_.next->socket.get(), static_cast<short>(full_ ? POLLOUT : 0), 0}};
    const bool may_send = !all_sent_ && !full_;
    const timespec nap = {0, kNapNs};
    if (may_send) ::ppoll(polled, 2, &nap, nullptr);
    else ::poll(polled, 2, watch.poll_ms());
  }

  double elapsed_us() const { return static_cast<double>(now_ns() - began_ns_) / 1000; }

  Streamed seen() const {
    const Arrival& end = arrived_.back();
    const Arrival& half = at(arrived_, end.us / 2);
    return {end.us, end.bytes, end.us - half.us, end.bytes - half.bytes, sent_};
  }

  const StreamRing& ring_;
  const StreamLimits& limits_;
  std::vector<std::byte> going_on_, last_, room_;
  std::uint64_t sent_ = 0, in_run_ = 0;
  bool ends_ = false, all_sent_ = false, full_ = false, all_came_ = false;
  const std::int64_t began_ns_ = now_ns();
  std::vector<Arrival> arrived_, acknowledged_;
};

}  // namespace

StreamRing ring_of(const Hosts& hosts, Rank self, std::span<const PeerSocket> peer_sockets) {
  std::vector<std::vector<Rank>> members;
  std::size_t own = 0;
  StreamRing ring;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    if (hosts.first_rank_of_host(rank) == rank) members.emplace_back();
    const auto host = std::find_if(members.begin(), members.end(), [&](const std::vector<Rank>& ranks) {
      return ranks.empty() || hosts.same_host(ranks[0], rank);
    });
    if (rank == self) own = static_cast<std::size_t>(host - members.begin());
    if (rank == self) ring.index = static_cast<std::uint32_t>(host->size());
    host->push_back(rank);
  }
  std::size_t min = members[0].size();
  for (const std::vector<Rank>& ranks : members) min = std::min(min, ranks.size());
  ring.ranks = static_cast<std::uint32_t>(min);
  if (ring.index >= min) return ring;
  ring.next = &peer_sockets[members[(own + 1) % members.size()][ring.index]];
  ring.previous = &peer_sockets[members[(own + members.size() - 1) % members.size()][ring.index]];
  return ring;
}

Result<Streamed> stream(const StreamRing& ring, const StreamLimits& limits, const Watch& watch) {
  return Exchange(ring, limits).run(watch);
}

}  // namespace tutti
