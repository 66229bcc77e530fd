// Mesh: contacts to ranks of other hosts.
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "src/base/clock.h"
#include "src/communicator/control/mesh.h"

namespace tutti {
namespace {

// Start of every note, as of a frame.
struct NoteHead {
  std::uint32_t version = 1;
  std::uint32_t kind = 0;
};

bool is_notification(std::uint32_t kind) {
  return kind >= static_cast<std::uint32_t>(NotificationKind::failure) &&
         kind <= static_cast<std::uint32_t>(NotificationKind::rejection);
}

}  // namespace

Result<bool> Mesh::send_note(Rank peer, const Frame& frame, int descriptor) {
  if (descriptor >= 0)
    return unsupported("rank " + std::to_string(peer) +
                       " is on another host, and memory can be passed within one only");
  connection(peer).send(context(peer), std::as_bytes(std::span(&frame, 1)), frame.context);
  return true;
}

// Returns the next frame among the notes. Notifications are moved to their own queue. A listener, a goodbye or an
// abandonment is recorded and not returned.
std::optional<Mesh::Arrival> Mesh::pull_note(Rank rank) {
  connection(rank).advance();
  while (auto note = connection(rank).take(context(rank))) {
    NoteHead head;
    if (note->size() >= sizeof head) std::memcpy(&head, note->data(), sizeof head);
    if (head.version == 1 && is_notification(head.kind)) {
      note->erase(note->begin(), note->begin() + sizeof head);
      if (static_cast<NotificationKind>(head.kind) == NotificationKind::listener) {
        if (note->size() == sizeof(Address)) std::memcpy(&peers_[rank].listener.emplace(), note->data(), note->size());
        continue;
      }
      notifications_.push_back({rank, static_cast<NotificationKind>(head.kind), std::move(*note)});
      continue;
    }
    Arrival arrival;
    Frame& frame = arrival.received.frame;
    arrival.whole = note->size() == sizeof frame && head.version == 1;
    if (arrival.whole) std::memcpy(&frame, note->data(), sizeof frame);
    if (arrival.whole && frame.context != 0) arrival.received.contact = peers_[rank].contact.for_context(frame.context);
    if (!arrival.whole || !note_end(peers_[rank], frame)) return arrival;
  }
  return std::nullopt;
}

std::vector<TcpConnection*> Mesh::connections() const {
  std::vector<TcpConnection*> all;
  for (const Rank peer : remote_ranks_) all.push_back(&connection(peer));
  return all;
}

bool Mesh::advance() {
  bool moved = false;
  for (const Rank peer : remote_ranks_) moved = connection(peer).advance() || moved;
  return moved;
}

void Mesh::push() {
  for (const Rank peer : remote_ranks_) connection(peer).push();
}

void Mesh::notify(NotificationKind kind, std::span<const std::byte> payload) {
  for (const Rank peer : remote_ranks_) notify(peer, kind, payload);
}

void Mesh::notify(Rank peer, NotificationKind kind, std::span<const std::byte> payload) {
  const NoteHead head = {1, static_cast<std::uint32_t>(kind)};
  std::vector<std::byte> note(sizeof head + payload.size());
  std::memcpy(note.data(), &head, sizeof head);
  if (!payload.empty()) std::memcpy(note.data() + sizeof head, payload.data(), payload.size());
  connection(peer).send(context(peer), note);
}

std::optional<Notification> Mesh::receive() {
  const std::lock_guard lock(*mutex_);
  for (const Rank rank : remote_ranks_) {
    while (auto arrival = pull_note(rank)) peers_[rank].inbox.push_back(std::move(*arrival));
  }
  if (notifications_.empty()) return std::nullopt;
  Notification first = std::move(notifications_.front());
  notifications_.pop_front();
  return first;
}

void Mesh::report_listener(const Address& address) {
  notify(NotificationKind::listener, std::as_bytes(std::span(&address, 1)));
}

bool Mesh::drained() {
  bool all = true;
  for (const Rank peer : remote_ranks_) all = connection(peer).drained(context(peer)) && all;
  return all;
}

std::optional<Address> Mesh::listener(Rank peer) {
  const std::lock_guard lock(*mutex_);
  while (auto arrival = pull_note(peer)) peers_[peer].inbox.push_back(std::move(*arrival));
  return peers_[peer].listener;
}

bool Mesh::has_notes() const {
  return std::any_of(remote_ranks_.begin(), remote_ranks_.end(),
                     [this](Rank peer) { return connection(peer).has_notes(); });
}

void Mesh::drain_for(std::int64_t timeout_ms) {
  const Deadline deadline = Deadline::after_ms(timeout_ms);
  for (const Rank peer : remote_ranks_) {
    while (!connection(peer).drained(context(peer)) && !deadline.passed())
      connection(peer).wait(static_cast<int>(deadline.left_ms()));
  }
}

Result<std::pair<Contact, Passage>> Mesh::new_contact(Rank peer) {
  std::pair<Contact, Passage> both;
  if (!is_remote(peer)) {
    auto sockets = TUTTI_TRY(open_socket_pair(SOCK_SEQPACKET));
    both.first = Contact(std::move(sockets.first));
    both.second.socket = std::move(sockets.second);
    return both;
  }
  both.second.context = connection(peer).new_context();
  both.first = peers_[peer].contact.for_context(both.second.context);
  return both;
}

Result<bool> Mesh::try_send(Rank peer, Frame frame, const Passage& passage) {
  frame.context = passage.context;
  return try_send(peer, frame, passage.socket ? passage.socket.get() : -1);
}

Status Mesh::send(Rank peer, Frame frame, const Passage& passage) {
  frame.context = passage.context;
  return send(peer, frame, passage.socket ? passage.socket.get() : -1);
}

}  // namespace tutti
