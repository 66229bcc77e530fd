#include "src/communicator/control/mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "src/base/caught.h"
#include "src/base/clock.h"
#include "src/bootstrap/address.h"

namespace tutti {
namespace {

constexpr int kGoodbyeMs = 100;  // For a peer that reads slowly.

// Data written before a frame was sent is visible to its receiver, as the kernel guarantees. Between threads of one
// process, this word makes the order known to the compiler and to ThreadSanitizer, which cannot see it in the kernel.
std::atomic<std::uint64_t> sent_frames{0};

using ConnectionPair = std::pair<std::shared_ptr<TcpConnection>, std::shared_ptr<TcpConnection>>;

Result<ConnectionPair> connect_within_process(CarrierSource* carriers) {
  const Socket listener = TUTTI_TRY(listen_at({loopback_address(), "", SOCK_STREAM}));
  const Address address = TUTTI_TRY(local_address(listener));
  Socket caller = TUTTI_TRY(connect_to({address, "", SOCK_STREAM}));
  pollfd called = {listener.get(), POLLIN, 0};
  ::poll(&called, 1, kGoodbyeMs);
  auto accepted = TUTTI_TRY(accept_socket(listener));
  if (!accepted) return system_error("connect to " + describe(address) + " within this process");
  const auto end = [&](Socket socket, bool odd) -> Result<std::shared_ptr<TcpConnection>> {
    std::unique_ptr<Carrier> carrier;
    if (carriers != nullptr) carrier = TUTTI_TRY(carriers->make());
    return std::make_shared<TcpConnection>(std::move(socket), odd, describe(address),
                                           CarrierOptions{std::move(carrier), carriers != nullptr, ""});
  };
  std::shared_ptr<TcpConnection> first = TUTTI_TRY(end(std::move(*accepted), false));
  std::shared_ptr<TcpConnection> second = TUTTI_TRY(end(std::move(caller), true));
  return ConnectionPair(std::move(first), std::move(second));
}

bool passes_contact(const ReceivedFrame& received) {
  return received.frame.kind == FrameKind::socket || received.frame.kind == FrameKind::proposal;
}

}  // namespace

ErrorPayload::ErrorPayload(const Status& status)
    : code(static_cast<std::uint32_t>(status.code())),
      length(static_cast<std::uint32_t>(std::min(status.message().size(), text.size()))) {
  std::copy_n(status.message().begin(), length, text.begin());
}

std::optional<Status> ErrorPayload::status() const {
  if (code == 0 || code > static_cast<std::uint32_t>(Code::internal) || length > text.size()) return std::nullopt;
  return Status(static_cast<Code>(code), std::string(text.data(), length));
}

Mesh::Mesh(Rank self, std::vector<Contact> contacts, Hosts hosts)
    : self_(self), hosts_(std::move(hosts)), peers_(contacts.size()), mutex_(std::make_unique<std::mutex>()) {
  for (Rank peer = 0; peer < peers_.size(); ++peer) {
    if (contacts[peer].is_remote()) remote_ranks_.push_back(peer);
    peers_[peer].contact = std::move(contacts[peer]);
  }
}

// Contacts in the inboxes share the connections, so they are closed first. If memory for the list is lacking, contacts
// close one after another.
Mesh::~Mesh() {
  (void)caught([&]() -> Status {
    std::vector<Contact> contacts;
    contacts.reserve(peers_.size());
    for (Peer& peer : peers_) {
      peer.inbox.clear();
      contacts.push_back(std::move(peer.contact));
    }
    Contact::close_all(std::move(contacts));
    return {};
  });
}

Result<std::vector<Mesh>> Mesh::within_process(const Hosts& hosts, CarrierSource* carriers) {
  const Rank ranks = hosts.ranks();
  std::vector<std::vector<Contact>> contacts(ranks);
  for (auto& row : contacts) row.resize(ranks);
  for (Rank a = 0; a < ranks; ++a) {
    for (Rank b = a + 1; b < ranks; ++b) {
      if (!hosts.same_host(a, b)) {
        auto [first, second] = TUTTI_TRY(connect_within_process(carriers));
        contacts[a][b] = Contact(std::move(first));
        contacts[b][a] = Contact(std::move(second));
        continue;
      }
      auto pair = TUTTI_TRY(open_socket_pair(SOCK_SEQPACKET));
      contacts[a][b] = Contact(std::move(pair.first));
      contacts[b][a] = Contact(std::move(pair.second));
    }
  }
  std::vector<Mesh> meshes;
  for (Rank rank = 0; rank < ranks; ++rank) meshes.emplace_back(rank, std::move(contacts[rank]), hosts);
  return meshes;
}

Result<bool> Mesh::try_send(Rank peer, const Frame& frame, int descriptor) {
  if (is_remote(peer)) return send_note(peer, frame, descriptor);
  iovec data = {const_cast<Frame*>(&frame), sizeof frame};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  sent_frames.fetch_add(1, std::memory_order_release);
  ssize_t sent;
  do {
    sent = ::sendmsg(peers_[peer].contact.socket().get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(sizeof frame)) return true;
  // The peer is dead. find_dead() reports this to callers that wait for it.
  if (errno == EPIPE || errno == ECONNRESET) return true;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  return system_error("send a control message to rank " + std::to_string(peer));
}

Status Mesh::send(Rank peer, const Frame& frame, int descriptor) {
  const bool sent = TUTTI_TRY(try_send(peer, frame, descriptor));
  if (sent) return {};
  return remote_error("rank " + std::to_string(peer) +
                      " has left so many control messages unread that no other fits: it is stopped, or makes no calls");
}

// Returns the next frame on the socket. A goodbye or an abandonment is recorded and not returned. Closes surplus
// descriptors.
std::optional<Mesh::Arrival> Mesh::pull_socket(Peer& peer) {
  Arrival arrival;
  Frame& frame = arrival.received.frame;
  iovec data = {&frame, sizeof frame};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count;
  // A peer that left without reading all frames resets the connection. Its frames follow after this error.
  do {
    count = ::recvmsg(peer.contact.socket().get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (count < 0 && (errno == EINTR || errno == ECONNRESET));
  if (count <= 0) return std::nullopt;
  (void)sent_frames.load(std::memory_order_acquire);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;  // Padding leaves space for a second descriptor.
      std::memcpy(&descriptor, reinterpret_cast<const char*>(header) + at, sizeof descriptor);
      arrival.surplus = arrival.surplus || arrival.received.file;
      arrival.received.file.reset(descriptor);
    }
  }
  arrival.truncated = (message.msg_flags & MSG_CTRUNC) != 0;
  arrival.whole = count == static_cast<ssize_t>(sizeof frame) && frame.version == 1;
  if (!arrival.whole || !note_end(peer, frame)) return arrival;
  return std::nullopt;
}

// Records a goodbye or an abandonment, which are the last frames of a peer. Returns whether the frame is one.
bool Mesh::note_end(Peer& peer, const Frame& frame) {
  if (frame.kind == FrameKind::goodbye) peer.left = true;
  if (frame.kind != FrameKind::abandonment) return frame.kind == FrameKind::goodbye;
  const auto payload = payload_of<ErrorPayload>(frame);
  std::optional<Status> reason = payload ? payload->status() : std::nullopt;
  peer.abandoned = reason ? std::move(*reason) : remote_error("it sent no valid reason");
  return true;
}

std::optional<Mesh::Arrival> Mesh::pull(Rank rank) {
  return is_remote(rank) ? pull_note(rank) : pull_socket(peers_[rank]);
}

Status Mesh::validate(Rank peer, const Arrival& arrival) const {
  const std::string who = "rank " + std::to_string(peer);
  const Frame& frame = arrival.received.frame;
  if (!arrival.whole || frame.bytes > frame.payload.size())
    return invalid_usage(who + " sent a control message of another version of tutti");
  if (arrival.surplus) return invalid_usage(who + " sent several descriptors with one control message");
  if (arrival.truncated) {
    return {Code::system, "a descriptor from " + who + " was lost: raise the limit of open files (ulimit -n)"};
  }
  const bool due = frame.kind == FrameKind::board || frame.kind == FrameKind::region ||
                   frame.kind == FrameKind::socket || frame.kind == FrameKind::memory;
  if (due && !is_remote(peer) && !arrival.received.file)
    return invalid_usage(who + " sent a control message without its descriptor");
  return {};
}

Result<std::optional<ReceivedFrame>> Mesh::receive(Rank peer) {
  std::optional<Arrival> arrival;
  {
    const std::lock_guard lock(*mutex_);
    std::deque<Arrival>& inbox = peers_[peer].inbox;
    if (inbox.empty()) {
      arrival = pull(peer);
    } else {
      arrival = std::move(inbox.front());
      inbox.pop_front();
    }
  }
  if (!arrival) return std::optional<ReceivedFrame>();
  TUTTI_CHECK_OK(validate(peer, *arrival));
  if (passes_contact(arrival->received) && arrival->received.file)
    arrival->received.contact = Contact(adopt_socket(arrival->received.file.take()));
  return std::optional(std::move(arrival->received));
}

void Mesh::wait(Rank peer, int timeout_ms) {
  pollfd poll_state = {peers_[peer].contact.socket().get(), POLLIN, 0};
  {
    const std::lock_guard lock(*mutex_);
    if (!peers_[peer].inbox.empty()) return;
    // Sleeps only: no more data will arrive, and poll() would return at once.
    if (peers_[peer].left) poll_state.fd = -1;
  }
  if (is_remote(peer) && !has_left(peer)) return connection(peer).wait(timeout_ms);
  ::poll(&poll_state, 1, timeout_ms);
}

// The socket of a dead peer hangs up. Frames that the peer sent before can still be read; one may be a goodbye.
std::optional<Rank> Mesh::find_dead() {
  const std::lock_guard lock(*mutex_);
  for (Rank rank = 0; rank < peers_.size(); ++rank) {
    if (has_died(rank)) return rank;
  }
  return std::nullopt;
}

bool Mesh::is_dead(Rank peer) {
  const std::lock_guard lock(*mutex_);
  return has_died(peer);
}

bool Mesh::has_left(Rank peer) {
  const std::lock_guard lock(*mutex_);
  return peers_[peer].left;
}

bool Mesh::has_died(Rank rank) {
  Peer& peer = peers_[rank];
  if (rank == self_ || peer.left) return false;
  if (!peer.abandoned.ok()) return true;
  if (is_remote(rank)) {
    connection(rank).check_liveness(now_ns());
    connection(rank).advance();
    if (!connection(rank).lost()) return false;
  } else {
    pollfd poll_state = {peer.contact.socket().get(), POLLRDHUP, 0};
    if (::poll(&poll_state, 1, 0) <= 0 || (poll_state.revents & (POLLHUP | POLLRDHUP | POLLERR)) == 0) return false;
  }
  while (auto arrival = pull(rank)) peer.inbox.push_back(std::move(*arrival));
  return !peer.left;
}

void Mesh::abandon(const Status& reason) {
  const Frame frame = frame_of(FrameKind::abandonment, ErrorPayload(reason));
  for (Rank peer = 0; peer < peers_.size(); ++peer) {
    if (peers_[peer].contact) (void)try_send(peer, frame).ok();  // Fits, since the contact is new.
  }
  drain_for(kGoodbyeMs);
}

Status Mesh::abandonment(Rank peer) const {
  const std::lock_guard lock(*mutex_);
  return peers_[peer].abandoned.copy();
}

Status Mesh::death(Rank peer, const std::string& when) const {
  const std::string who = "rank " + std::to_string(peer);
  if (const Status reason = abandonment(peer); !reason.ok())
    return {reason.code(), who + " gave up creating this communicator: " + reason.message()};
  if (!is_remote(peer)) return remote_error(who + " died " + when);
  return remote_error(who + " died or is out of reach " + when + ": " + connection(peer).reason());
}

void Mesh::leave() {
  const Frame frame = {.kind = FrameKind::goodbye};
  for (Rank peer = 0; peer < peers_.size(); ++peer) {
    if (is_remote(peer)) {
      (void)send(peer, frame).ok();
      continue;
    }
    const Socket& socket = peers_[peer].contact.socket();
    if (peer == self_ || !socket || send(peer, frame).ok()) continue;
    pollfd poll_state = {socket.get(), POLLOUT, 0};
    ::poll(&poll_state, 1, kGoodbyeMs);
    (void)send(peer, frame).ok();
  }
  drain_for(kGoodbyeMs);
}

}  // namespace tutti
