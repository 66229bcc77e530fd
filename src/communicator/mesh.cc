#include "src/communicator/mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace tutti {

Mesh::Mesh(Rank self, std::vector<Socket> sockets)
    : self_(self),
      sockets_(std::move(sockets)),
      mutex_(std::make_unique<std::mutex>()),
      left_(sockets_.size(), false) {}

Result<std::vector<Mesh>> Mesh::within_process(Rank ranks) {
  std::vector<std::vector<Socket>> sockets(ranks);
  for (auto& row : sockets) row.resize(ranks);
  for (Rank a = 0; a < ranks; ++a) {
    for (Rank b = a + 1; b < ranks; ++b) {
      auto pair = TUTTI_TRY(open_socket_pair(SOCK_SEQPACKET));
      sockets[a][b] = std::move(pair.first);
      sockets[b][a] = std::move(pair.second);
    }
  }
  std::vector<Mesh> meshes;
  for (Rank rank = 0; rank < ranks; ++rank) meshes.emplace_back(rank, std::move(sockets[rank]));
  return meshes;
}

Status Mesh::send(Rank peer, const Frame& frame, int descriptor) {
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
  ssize_t sent;
  do {
    sent = ::sendmsg(sockets_[peer].get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(sizeof frame)) return {};
  if (errno == EPIPE || errno == ECONNRESET) return {};  // It is gone: whoever waits for it will hear by find_dead().
  return system_error("send a control message to rank " + std::to_string(peer));
}

Result<std::optional<ReceivedFrame>> Mesh::receive(Rank peer) {
  ReceivedFrame received;
  iovec data = {&received.frame, sizeof received.frame};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count;
  do {
    count = ::recvmsg(sockets_[peer].get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<ReceivedFrame>();
  if (count <= 0) return std::optional<ReceivedFrame>();
  if (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    received.file.reset(descriptor);
  }
  if (count != static_cast<ssize_t>(sizeof received.frame) || received.frame.version != 1 ||
      received.frame.bytes > received.frame.payload.size()) {
    return invalid_usage("rank " + std::to_string(peer) + " sent a control message of another version of tutti");
  }
  if (message.msg_flags & MSG_CTRUNC) {
    return Status(Code::system, "a descriptor from rank " + std::to_string(peer) +
                                    " was lost: raise the limit of open files (ulimit -n)");
  }
  if (received.frame.kind == FrameKind::goodbye) {
    const std::lock_guard lock(*mutex_);
    left_[peer] = true;
    return std::optional<ReceivedFrame>();
  }
  return std::optional<ReceivedFrame>(std::move(received));
}

void Mesh::wait(Rank peer, int timeout_ms) const {
  pollfd poll_state = {sockets_[peer].get(), POLLIN, 0};
  ::poll(&poll_state, 1, timeout_ms);
}

// A dead peer's socket hangs up; what it sent before can still be read, a goodbye among it.
std::optional<Rank> Mesh::find_dead() {
  const std::lock_guard lock(*mutex_);
  for (Rank peer = 0; peer < sockets_.size(); ++peer) {
    if (peer == self_ || left_[peer]) continue;
    pollfd poll_state = {sockets_[peer].get(), POLLRDHUP, 0};
    if (::poll(&poll_state, 1, 0) <= 0 || (poll_state.revents & (POLLHUP | POLLRDHUP | POLLERR)) == 0) continue;
    Frame frame;
    bool goodbye = false;
    while (::recv(sockets_[peer].get(), &frame, sizeof frame, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof frame)) {
      goodbye = goodbye || frame.kind == FrameKind::goodbye;
    }
    left_[peer] = goodbye;
    if (!goodbye) return peer;
  }
  return std::nullopt;
}

void Mesh::leave() {
  Frame frame;
  frame.kind = FrameKind::goodbye;
  for (Rank peer = 0; peer < sockets_.size(); ++peer) {
    if (peer != self_ && sockets_[peer]) (void)send(peer, frame).ok();
  }
}

}  // namespace tutti
