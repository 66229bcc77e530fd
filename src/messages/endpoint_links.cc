// Connections of the endpoint, and checks of the communicator.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/caught.h"
#include "src/messages/endpoint.h"
#include "src/messages/service.h"

namespace tutti {
namespace {

constexpr std::uint32_t kIdleChecks = 10;  // Checks without incomplete requests until the checks end.
constexpr std::int64_t kMaxRetryMs = 20;
constexpr std::int64_t kBrokenMs = 1000;  // Time for the communicator to find why a link ended.

// True if the rank does not accept links yet. A rank begins to do so at its first message.
bool is_early(const Status& status) {
  const auto contains = [&](int error) { return status.message().find(std::strerror(error)) != std::string::npos; };
  return contains(ECONNREFUSED) || contains(EAGAIN);
}

}  // namespace

// ---- Opening ----

Result<std::optional<Handshake>> MessageEndpoint::call(Rank rank) {
  const std::optional<Endpoint> address = TUTTI_TRY(membership_.address(rank));
  if (!address) return std::optional<Handshake>();
  Socket socket = TUTTI_TRY(open_socket_for(*address));
  Status connecting = connect(socket, *address);
  if (!connecting.ok() && is_early(connecting)) return std::optional<Handshake>();
  if (!connecting.ok()) return connecting;
  const Claim claim = {Role::message, membership_.rank, membership_.ranks, rank};
  return std::optional(TUTTI_TRY(Handshake::call(std::move(socket), claim, membership_.credentials, JoinRecord())));
}

void MessageEndpoint::open_link(Peer& target) {
  const MessageLink& link = target.links[kOut];
  target.retry = Deadline();
  if (!closed_.ok() || link.connected() || target.calling || !target.broken.ok() || target.gone[kOut]) return;
  auto called = call(link.peer());
  if (!called.ok()) return break_link(target, kOut, std::move(called).status());
  target.calling = std::move(called).value();
  if (!target.calling) return retry_later(target);
  poll_for(EPOLLOUT, target, kOut, EPOLL_CTL_ADD);
}

void MessageEndpoint::retry_later(Peer& target) {
  target.retry = Deadline::after_ms(target.retry_ms);
  target.retry_ms = std::min(2 * target.retry_ms, kMaxRetryMs);
  service_.wake();
}

// Continues the handshake of the out link. The receiver hangs up when its time for the handshake is over, which the
// suspension of this process may cause. If the receiver has left or died, the checks of the communicator find that.
void MessageEndpoint::proceed(Peer& target) {
  Result<bool> done = target.calling->advance();
  if (!done.ok()) {
    Status status = std::move(done).status();
    if (status.code() != Code::remote) return break_link(target, kOut, std::move(status));
    end_link(target, kOut);
    return retry_later(target);
  }
  if (!done.value()) return poll_for(EPOLLIN, target, kOut, EPOLL_CTL_MOD);
  AcceptedPeer accepted = std::move(*target.calling).finish();
  target.calling.reset();
  admit(std::move(accepted));
}

void MessageEndpoint::admit(AcceptedPeer accepted) {
  const Rank rank = accepted.called ? accepted.claim.server : accepted.claim.rank;
  const Side side = accepted.called ? kOut : kIn;
  if (accepted.claim.ranks != membership_.ranks || rank >= membership_.ranks || !closed_.ok()) return;
  Peer& other = peer(rank);
  MessageLink& link = other.links[side];
  if (link.connected()) return;
  const bool remote = membership_.is_remote(rank);
  if (remote) watch_connection(accepted.socket, 0);
  const bool called = accepted.called;
  link.connect(std::move(accepted), remote ? membership_.protection : Protection::none);
  poll_for(EPOLLIN, other, side, called ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
  push(other);
}

// Polls a link, or the connection that becomes one, for these events. `operation` is that of epoll_ctl().
void MessageEndpoint::poll_for(std::uint32_t events, Peer& other, Side side, int operation) {
  const MessageLink& link = other.links[side];
  const int descriptor = side == kOut && other.calling ? other.calling->descriptor() : link.descriptor();
  epoll_event event = {events, {.u64 = 2ULL * link.peer() + side}};
  if (::epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0) return;
  break_link(other, side, system_error("poll a connection for tagged messages"));
}

// ---- Moving data ----

// Sends as much as both links accept, and polls for room if frames remain.
void MessageEndpoint::push(Peer& other) {
  for (const Side side : {kOut, kIn}) {
    MessageLink& link = other.links[side];
    if (!link.connected()) continue;
    std::vector<RequestPointer> sent;
    Status status = link.push(sent);
    for (const RequestPointer& request : sent) {
      const MessageCall& call = request->call();
      end(request, {}, {call.peer, call.tag, call.count});
    }
    if (!status.ok()) {
      break_link(other, side, std::move(status));
    } else if (link.unsent() != other.awaits_room[side]) {
      other.awaits_room[side] = link.unsent();
      poll_for(EPOLLIN | (link.unsent() ? EPOLLOUT : 0U), other, side, EPOLL_CTL_MOD);
    }
  }
}

void MessageEndpoint::serve_links() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count && closed_.ok(); ++i) {
    Peer& other = peer(static_cast<Rank>(events[static_cast<std::size_t>(i)].data.u64 / 2));
    const Side side = events[static_cast<std::size_t>(i)].data.u64 % 2 == 0 ? kOut : kIn;
    if (other.links[side].connected()) {
      serve_link(other, side);
    } else if (side == kOut && other.calling) {
      proceed(other);
    }
  }
}

void MessageEndpoint::serve_link(Peer& other, Side side) {
  MessageLink& link = other.links[side];
  Result<bool> open = link.receive(*this);
  const bool says_goodbye = link.received_goodbye();
  if (says_goodbye && !other.gone[side]) side == kOut ? end_sends(other) : end_receives(other);
  const bool goes_on = open.ok() && open.value();
  if (!goes_on && says_goodbye) {
    end_link(other, side);
  } else if (!goes_on) {
    const std::string end = "rank " + std::to_string(link.peer()) + " closed its connection for tagged messages";
    break_link(other, side, open.ok() ? remote_error(end) : std::move(open).status());
  }
  push(other);
}

// ---- Ending ----

void MessageEndpoint::end_link(Peer& other, Side side) {
  MessageLink& link = other.links[side];
  const bool calling = side == kOut && other.calling;
  const int descriptor = calling ? other.calling->descriptor() : link.descriptor();
  if (descriptor >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  if (calling) other.calling.reset();
  if (side == kOut) other.retry = Deadline();
  link.disconnect();
}

// Ends a link without a goodbye. Its requests end when the communicator has found the reason. A rank that leaves needs
// no reason: it has ended its requests, and peers may end links to it.
void MessageEndpoint::break_link(Peer& other, Side side, Status reason) {
  end_link(other, side);
  if (!other.broken.ok() || leaving_) return;
  other.broken_until = Deadline::after_ms(reason.code() == Code::remote ? kBrokenMs : 1);
  other.broken = std::move(reason).during("exchanging tagged messages" + membership_.name);
  check_at_ = Deadline::after_ms(1);
  service_.wake();
}

// A rank that has left has sent all its messages before. They are read between the first and the second check.
void MessageEndpoint::note_departures() {
  for (auto& [rank, other] : peers_) {
    if (rank == membership_.rank || (other.gone[kOut] && other.gone[kIn]) || !membership_.has_left(rank)) continue;
    if (++other.left_ticks < 2) continue;
    if (!other.broken.ok()) other.broken = Status();
    if (!other.gone[kOut] && !other.links[kOut].connected()) end_sends(other);
    if (!other.gone[kIn] && !other.links[kIn].connected()) end_receives(other);
  }
}

// Returns the reason of a link that ended without a goodbye and without a failure of the communicator.
Status MessageEndpoint::take_overdue() {
  if (!trouble_.ok()) return std::exchange(trouble_, Status());
  for (auto& [rank, other] : peers_) {
    if (!other.broken.ok() && other.broken_until.passed() && other.left_ticks == 0) return other.broken.copy();
  }
  return {};
}

// Checks go on for a while after the last request or probe, so that few of them wake the thread.
bool MessageEndpoint::check_is_due() {
  if (!check_at_.passed()) return false;
  const bool probed = std::exchange(probed_, false);
  const bool idle = incomplete_ == 0 && !probed && trouble_.ok() &&
                    std::all_of(peers_.begin(), peers_.end(), [](const auto& each) { return each.second.broken.ok(); });
  idle_checks_ = idle ? idle_checks_ + 1 : 0;
  const bool ends = idle_checks_ > kIdleChecks || !closed_.ok();
  check_at_ = ends ? Deadline() : Deadline::after_ms(kMessageCheckMs);
  return !idle && closed_.ok();
}

void MessageEndpoint::check_communicator() {
  {
    const Locked lock(*this);
    if (!check_is_due()) return;
  }
  Status status = membership_.failure();
  if (status.ok()) {
    {
      const Locked lock(*this);
      note_departures();
      status = take_overdue();
    }
    if (!status.ok()) status = membership_.fail(std::move(status));
  }
  if (status.ok()) return;
  const Locked lock(*this);
  end_all(status);
}

// ---- Service thread ----

void MessageEndpoint::watch(std::vector<pollfd>& polled) {
  const Locked lock(*this);
  polled.push_back({epoll_.get(), POLLIN, 0});
  acceptor_.watch(polled);
}

Deadline MessageEndpoint::deadline() {
  const Locked lock(*this);
  Deadline next = acceptor_.deadline();
  next.at_ns = std::min(next.at_ns, check_at_.at_ns);
  for (const auto& [rank, other] : peers_) next.at_ns = std::min(next.at_ns, other.retry.at_ns);
  return next;
}

void MessageEndpoint::serve(const std::vector<pollfd>& polled) {
  {
    const Locked lock(*this);
    Status status = caught([&]() -> Status {
      TUTTI_CHECK_OK(acceptor_.serve(polled));
      for (AcceptedPeer& accepted : acceptor_.take()) admit(std::move(accepted));
      serve_links();
      for (auto& [rank, other] : peers_) {
        if (other.retry.passed()) open_link(other);
      }
      return {};
    });
    if (!status.ok() && trouble_.ok()) {
      trouble_ = std::move(status).during("exchanging tagged messages" + membership_.name);
      check_at_ = Deadline::after_ms(1);
    }
  }
  run_callbacks();
  check_communicator();
  run_callbacks();
}

void MessageEndpoint::run_callbacks() {
  std::vector<RequestPointer> callbacks;
  {
    const Locked lock(*this);
    callbacks.swap(callbacks_);
  }
  for (const RequestPointer& request : callbacks) request->run_callback();
}

}  // namespace tutti
