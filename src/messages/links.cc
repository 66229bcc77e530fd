#include "src/messages/links.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/log.h"
#include "src/messages/service.h"

namespace tutti {
namespace {

constexpr std::int64_t kMaxRetryMs = 20;
constexpr std::int64_t kBrokenMs = 1000;  // Time for the communicator to find why a link ended.

Status closed_by(Rank peer) {
  return remote_error("rank " + std::to_string(peer) + " closed its connection for tagged messages");
}

}  // namespace

MessageLinks::MessageLinks(const MessageMembership& membership, MessageSockets sockets, MessageService& service,
                           MessageLinkUser& user)
    : membership_(membership),
      service_(service),
      user_(user),
      epoll_(std::move(sockets.epoll)),
      acceptor_(membership.rank, membership.ranks) {
  for (Socket& listener : sockets.listeners)
    acceptor_.listen(std::move(listener), Role::message, membership.credentials);
}

// ---- Opening ----

void MessageLinks::open(Rank rank) {
  Peer& target = peer(rank);
  const Side& out = side_of(target, LinkSide::out);
  const bool opens = target.connecting || target.retry.at_ns != Deadline{}.at_ns;
  if (closed_ || out.link.connected() || opens || !target.broken.ok() || out.ended) return;
  target.retry = Deadline{now_ns()};
  service_.wake();
}

std::vector<Rank> MessageLinks::peers() const {
  std::vector<Rank> ranks;
  for (const auto& [rank, other] : peers_) ranks.push_back(rank);
  return ranks;
}

std::vector<Rank> MessageLinks::due() const {
  std::vector<Rank> due;
  for (const auto& [rank, other] : peers_) {
    if (other.retry.passed()) due.push_back(rank);
  }
  return due;
}

void MessageLinks::call(Rank rank, Result<std::optional<SocketAddress>> address) {
  Peer& target = peer(rank);
  if (closed_ || target.retry.at_ns == Deadline{}.at_ns) return;  // The link has ended meanwhile.
  target.retry = Deadline();
  if (!side_of(target, LinkSide::out).link.has_frames()) return;  // All messages have been cancelled.
  if (!address.ok()) return break_link(target, LinkSide::out, std::move(address).status());
  auto called = start_call(rank, address.value());
  if (!called.ok()) {
    const Status status = std::move(called).status();
    if (!is_shortage(status)) return break_link(target, LinkSide::out, status.copy());
    note_shortage(status);
    return retry_later(target);
  }
  target.connecting = std::move(called).value();
  if (!target.connecting) return retry_later(target);
  poll_for(EPOLLOUT, target, LinkSide::out, EPOLL_CTL_ADD);
}

// Returns nullopt if the peer does not accept links yet. It begins to do so at its first message.
Result<std::optional<Handshake>> MessageLinks::start_call(Rank rank,
                                                          const std::optional<SocketAddress>& address) const {
  if (!address) return std::optional<Handshake>();
  Socket socket = TUTTI_TRY(open_socket_for(*address));
  Status connecting = connect(socket, *address);
  if (connecting.os_error() == ECONNREFUSED || connecting.os_error() == EAGAIN) return std::optional<Handshake>();
  if (!connecting.ok()) return connecting;
  const Claim claim = {Role::message, membership_.rank, membership_.ranks, rank};
  return std::optional(TUTTI_TRY(Handshake::connect(std::move(socket), claim, membership_.credentials, JoinRecord())));
}

void MessageLinks::retry_later(Peer& target) {
  target.retry = Deadline::after_ms(target.retry_ms);
  target.retry_ms = std::min(2 * target.retry_ms, kMaxRetryMs);
}

// Continues the handshake of the out link. The receiver hangs up when its time for the handshake is over, which the
// suspension of this process may cause. If the receiver has left or died, the checks of the communicator find that.
void MessageLinks::proceed(Peer& target) {
  Result<bool> done = target.connecting->advance();
  if (!done.ok()) {
    Status status = std::move(done).status();
    if (status.code() != Code::remote) return break_link(target, LinkSide::out, std::move(status));
    disconnect(target, LinkSide::out);
    return retry_later(target);
  }
  if (!done.value()) return poll_for(EPOLLIN, target, LinkSide::out, EPOLL_CTL_MOD);
  AcceptedPeer accepted = std::move(*target.connecting).finish();
  target.connecting.reset();
  admit(std::move(accepted));
}

// Without descriptors or memory, the acceptor accepts no connections for a while and tries again.
Status MessageLinks::accept(const std::vector<pollfd>& polled) {
  Status status = acceptor_.serve(polled);
  if (!status.ok() && !is_shortage(status)) return status;
  if (!status.ok()) note_shortage(status);
  for (AcceptedPeer& accepted : acceptor_.take()) admit(std::move(accepted));
  return {};
}

void MessageLinks::put_goodbye(Peer& other) {
  MessageFrame goodbye;
  goodbye.kind = MessageFrameKind::goodbye;
  for (Side& side : other.sides) side.link.put(goodbye);
}

// A peer that opens a link after this rank has left gets a goodbye with the welcome.
MessageLinks::Peer& MessageLinks::peer(Rank rank) {
  const auto [found, is_new] = peers_.try_emplace(rank, rank);
  if (is_new && leaving_) put_goodbye(found->second);
  return found->second;
}

void MessageLinks::note_shortage(const Status& shortage) {
  if (std::exchange(short_, true)) return;
  log(LogLevel::warn, "tagged messages%s wait for connections, which are retried: %s", membership_.name.c_str(),
      shortage.message().c_str());
}

void MessageLinks::admit(AcceptedPeer accepted) {
  const Rank rank = accepted.opened_by_us ? accepted.claim.server : accepted.claim.rank;
  const LinkSide side = accepted.opened_by_us ? LinkSide::out : LinkSide::in;
  if (accepted.claim.ranks != membership_.ranks || rank >= membership_.ranks || closed_) return;
  Peer& other = peer(rank);
  MessageLink& link = side_of(other, side).link;
  if (link.connected()) return;
  const bool remote = membership_.is_remote(rank);
  if (remote) watch_connection(accepted.socket, 0);
  const bool called = accepted.opened_by_us;
  short_ = false;
  link.connect(std::move(accepted), remote ? membership_.protection : Protection::none);
  poll_for(EPOLLIN, other, side, called ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
  push(rank);
}

// Polls a link, or the connection that becomes one, for these events. `operation` is that of epoll_ctl().
void MessageLinks::poll_for(std::uint32_t events, Peer& other, LinkSide side, int operation) {
  const MessageLink& link = side_of(other, side).link;
  const int descriptor = side == LinkSide::out && other.connecting ? other.connecting->descriptor() : link.descriptor();
  epoll_event event = {events, {.u64 = 2ULL * link.peer() + static_cast<std::uint64_t>(side)}};
  if (::epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0) return;
  break_link(other, side, system_error("poll a connection for tagged messages"));
}

// ---- Moving data ----

void MessageLinks::push(Rank rank) {
  Peer& other = peer(rank);
  for (const LinkSide side : {LinkSide::out, LinkSide::in}) {
    Side& own = side_of(other, side);
    if (!own.link.connected()) continue;
    std::vector<RequestPointer> sent;
    Status status = own.link.push(sent);
    for (const RequestPointer& request : sent) user_.end_sent(request);
    if (!status.ok()) {
      break_link(other, side, std::move(status));
    } else if (own.link.awaits_room() != own.awaits_room) {
      own.awaits_room = own.link.awaits_room();
      poll_for(EPOLLIN | (own.awaits_room ? EPOLLOUT : 0U), other, side, EPOLL_CTL_MOD);
    }
  }
}

void MessageLinks::serve_link(Peer& other, LinkSide side) {
  Side& own = side_of(other, side);
  Result<bool> received = own.link.receive(user_);
  const bool goes_on = received.ok() && received.value();
  Status end = received.ok() ? closed_by(own.link.peer()) : std::move(received).status();
  if (!goes_on && !own.link.opened() && end.code() == Code::remote) {  // As in proceed().
    disconnect(other, side);
    return retry_later(other);
  }
  const bool says_goodbye = own.link.received_goodbye();
  if (says_goodbye && !own.ended) end_side(other, side);
  if (!goes_on && says_goodbye) {
    disconnect(other, side);
  } else if (!goes_on) {
    break_link(other, side, std::move(end));
  }
  push(own.link.peer());
}

// ---- Ends ----

void MessageLinks::leave() {
  leaving_ = true;
  for (auto& [rank, other] : peers_) {
    put_goodbye(other);
    push(rank);
  }
}

bool MessageLinks::drained() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    const auto& sides = entry.second.sides;
    return std::all_of(sides.begin(), sides.end(), [](const Side& side) { return side.link.drained(); });
  });
}

void MessageLinks::close() {
  for (auto& [rank, other] : peers_) {
    for (const LinkSide side : {LinkSide::out, LinkSide::in}) disconnect(other, side);
  }
  acceptor_.stop_listening();
  closed_ = true;
}

void MessageLinks::disconnect(Peer& other, LinkSide side) {
  Side& own = side_of(other, side);
  const bool connecting = side == LinkSide::out && other.connecting;
  const int descriptor = connecting ? other.connecting->descriptor() : own.link.descriptor();
  if (descriptor >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  if (connecting) other.connecting.reset();
  if (side == LinkSide::out) other.retry = Deadline();
  own.awaits_room = false;
  own.link.disconnect();
}

// Ends a link without a goodbye. Its requests end when the communicator has found the reason. A rank that leaves needs
// no reason: it has ended its requests, and peers may end links to it.
void MessageLinks::break_link(Peer& other, LinkSide side, Status reason) {
  disconnect(other, side);
  if (!other.broken.ok() || leaving_) return;
  other.broken_until = Deadline::after_ms(reason.code() == Code::remote ? kBrokenMs : 1);
  other.broken = std::move(reason).during("exchanging tagged messages" + membership_.name);
  alarm_ = true;
  service_.wake();
}

void MessageLinks::end_side(Peer& other, LinkSide side) {
  Side& own = side_of(other, side);
  own.ended = true;
  const bool in_frame = own.link.in_frame();  // A goodbye would be read as a part of the frame.
  if (side == LinkSide::out && (!own.link.connected() || in_frame)) disconnect(other, side);
  user_.end_side(own.link.peer(), side);
}

void MessageLinks::note_departure(Rank rank) {
  Peer& other = peer(rank);
  if (ended(rank, LinkSide::out) && ended(rank, LinkSide::in)) return;
  if (++other.checks_after_leaving < 2) return;
  other.broken = Status();
  for (const LinkSide side : {LinkSide::out, LinkSide::in}) {
    const Side& own = side_of(other, side);
    if (!own.ended && !own.link.connected()) end_side(other, side);
  }
}

bool MessageLinks::any_broken() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& entry) { return !entry.second.broken.ok(); });
}

Status MessageLinks::overdue() const {
  for (const auto& [rank, other] : peers_) {
    const bool has_left = other.checks_after_leaving > 0;
    if (!other.broken.ok() && other.broken_until.passed() && !has_left) return other.broken.copy();
  }
  return {};
}

// ---- Service thread ----

void MessageLinks::watch(std::vector<pollfd>& polled) {
  polled.push_back({epoll_.get(), POLLIN, 0});
  acceptor_.watch(polled);
}

Deadline MessageLinks::deadline() const {
  if (alarm_) return Deadline{0};
  Deadline next = acceptor_.deadline();
  for (const auto& [rank, other] : peers_) next.at_ns = std::min(next.at_ns, other.retry.at_ns);
  return next;
}

Status MessageLinks::serve(const std::vector<pollfd>& polled) {
  TUTTI_CHECK_OK(accept(polled));
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
    Peer& other = peer(static_cast<Rank>(data / 2));
    const auto side = static_cast<LinkSide>(data % 2);
    if (side_of(other, side).link.connected()) {
      serve_link(other, side);
    } else if (side == LinkSide::out && other.connecting) {
      proceed(other);
    }
  }
  return {};
}

}  // namespace tutti
