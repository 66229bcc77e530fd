#include "src/bootstrap/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

struct FailureRecord {
  std::uint32_t code = 0;
  std::uint32_t bytes = 0;
  char text[1000] = {};
};
static_assert(sizeof(FailureRecord) == kFailureBytes);

}  // namespace

ControlChannel::ControlChannel(AcceptedPeer accepted)
    : socket_(std::move(accepted.socket)), session_(accepted.session), opened_by_us_(accepted.opened_by_us) {
  // Otherwise the last message could wait for an acknowledgement, and close() drops it if unread data has arrived.
  const int on = 1;
  (void)::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

short ControlChannel::events() const { return unsent() ? POLLIN | POLLOUT : POLLIN; }

Digest ControlChannel::mac(Direction direction, std::uint64_t number, Bytes message) const {
  return digest(session_, {bytes_of(direction), bytes_of(number), message});
}

Status ControlChannel::send(Message kind, Bytes payload) {
  const Header header = {static_cast<std::uint32_t>(payload.size()), kind, 1};
  const std::size_t begin = outgoing_.size();
  const auto append = [this](Bytes bytes) { outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end()); };
  append(bytes_of(header));
  append(payload);
  const Direction direction = opened_by_us_ ? Direction::from_caller : Direction::to_caller;
  append(bytes_of(mac(direction, sent_++, Bytes(outgoing_).subspan(begin))));
  return flush();
}

Status ControlChannel::send_failure(const Status& status) {
  FailureRecord record;
  record.code = static_cast<std::uint32_t>(status.code());
  record.bytes = static_cast<std::uint32_t>(std::min(status.message().size(), sizeof record.text));
  std::memcpy(record.text, status.message().data(), record.bytes);
  return send(Message::failure, bytes_of(record));
}

Status failure_in(const ReceivedMessage& message) {
  FailureRecord record;
  if (message.kind != Message::failure || message.payload.size() != sizeof record) {
    return internal_error("a peer sent an unexpected message");
  }
  std::memcpy(&record, message.payload.data(), sizeof record);
  const bool sound = record.code >= 1 && record.code <= static_cast<std::uint32_t>(Code::internal) &&
                     record.bytes <= sizeof record.text;
  if (!sound) return remote_error("a peer failed and sent a malformed error report");
  return {static_cast<Code>(record.code), std::string(record.text, record.bytes)};
}

Status ControlChannel::flush() {
  while (unsent()) {
    const ssize_t count = ::send(socket_.get(), outgoing_.data() + written_, outgoing_.size() - written_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (count < 0) return system_error("send to a peer");
    written_ += static_cast<std::size_t>(count);
  }
  outgoing_.clear();
  written_ = 0;
  return {};
}

Result<bool> ControlChannel::fill(std::size_t bytes) {
  while (incoming_.size() < bytes) {
    const std::size_t begin = incoming_.size();
    incoming_.resize(bytes);
    const ssize_t count = ::recv(socket_.get(), incoming_.data() + begin, bytes - begin, 0);
    incoming_.resize(begin + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (count < 0) return system_error("receive from a peer");
    if (count == 0) return remote_error("the connection ended");
  }
  return true;
}

Result<std::optional<ReceivedMessage>> ControlChannel::receive(std::size_t max_bytes) {
  Header header;
  const bool headed = TUTTI_TRY(fill(sizeof header));
  if (!headed) return std::optional<ReceivedMessage>();
  std::memcpy(&header, incoming_.data(), sizeof header);
  if (header.version != 1 || header.bytes > max_bytes) {
    return remote_error("a peer sent " + std::to_string(header.bytes) + " bytes where at most " +
                        std::to_string(max_bytes) + " were awaited");
  }
  const std::size_t signed_bytes = sizeof header + header.bytes;
  const bool whole = TUTTI_TRY(fill(signed_bytes + sizeof(Digest)));
  if (!whole) return std::optional<ReceivedMessage>();
  Digest given;
  std::memcpy(given.data(), incoming_.data() + signed_bytes, sizeof given);
  const Direction direction = opened_by_us_ ? Direction::to_caller : Direction::from_caller;
  if (!equal(given, mac(direction, taken_, Bytes(incoming_).first(signed_bytes)))) {
    return remote_error("a message was altered on its way");
  }
  ++taken_;
  ReceivedMessage message = {
      header.kind, {incoming_.begin() + sizeof header, incoming_.begin() + static_cast<std::ptrdiff_t>(signed_bytes)}};
  incoming_.clear();
  return std::optional(std::move(message));
}

}  // namespace tutti
