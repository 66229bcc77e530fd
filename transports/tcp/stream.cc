#include "transports/tcp/stream.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

constexpr std::size_t kShort = 1024;
constexpr std::size_t kMaxIncoming = 2 * (Records::kMaxPlain + Records::kHead + Records::kTag);

std::size_t gather(std::span<const iovec> parts, std::byte* to, std::size_t max) {
  std::size_t at = 0;
  for (const iovec& part : parts) {
    const std::size_t bytes = std::min(part.iov_len, max - at);
    std::memcpy(to + at, part.iov_base, bytes);
    at += bytes;
  }
  return at;
}

}  // namespace

ByteStream::ByteStream(Socket socket, const Seal& seal, bool calls) : socket_(std::move(socket)) {
  if (seal.protection == Protection::none) return;
  const auto records = [&](bool out) {
    return std::make_unique<Records>(seal.protection, record_key(seal.secret, out == calls ? "caller" : "called"));
  };
  closing_ = records(true);
  opening_ = records(false);
  text_.resize(Records::kMaxPlain);
  outgoing_.reserve(Records::kMaxPlain + Records::kHead + Records::kTag);
  incoming_.resize(kMaxIncoming);
}

// Copies short messages into one buffer, which the kernel sends faster than several parts.
ssize_t ByteStream::send(std::span<const iovec> parts, std::size_t total) {
  if (closing_) return send_sealed(parts, total);
  if (total <= kShort) {
    std::array<std::byte, kShort> whole;
    gather(parts, whole.data(), total);
    return counted(::send(socket_.get(), whole.data(), total, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return counted(::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

ssize_t ByteStream::counted(ssize_t sent) {
  if (sent > 0) total_ += static_cast<std::uint64_t>(sent);
  return sent;
}

ssize_t ByteStream::receive(std::span<iovec> parts) {
  if (opening_) return receive_sealed(parts);
  if (parts.size() == 1) return ::recv(socket_.get(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT);
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
}

std::size_t ByteStream::unacknowledged() const {
  int queued = 0;
  return ::ioctl(socket_.get(), SIOCOUTQ, &queued) == 0 ? static_cast<std::size_t>(queued) : 0;
}

bool ByteStream::flush() {
  while (held() > 0) {
    const ssize_t sent = counted(::send(socket_.get(), outgoing_.data() + sent_, held(), MSG_NOSIGNAL | MSG_DONTWAIT));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    sent_ += static_cast<std::size_t>(sent);
  }
  return true;
}

// Only one record at a time waits for the socket.
ssize_t ByteStream::send_sealed(std::span<const iovec> parts, std::size_t total) {
  if (!flush()) return -1;
  if (held() > 0) {
    errno = EAGAIN;
    return -1;
  }
  const std::size_t bytes = gather(parts, text_.data(), std::min(total, text_.size()));
  outgoing_.clear();
  sent_ = 0;
  closing_->close({text_.data(), bytes}, outgoing_);
  if (!flush()) return -1;
  return static_cast<ssize_t>(bytes);
}

// Opens the next record. Returns false with EAGAIN if it is incomplete, and with EBADMSG if it is damaged.
bool ByteStream::open_next() {
  const auto opened = opening_->open({incoming_.data() + begin_, end_ - begin_});
  errno = opened.ok() ? EAGAIN : EBADMSG;
  if (!opened.ok() || !opened.value()) return false;
  readable_ = opened.value()->plain;
  begin_ += opened.value()->bytes;
  return true;
}

ssize_t ByteStream::receive_sealed(std::span<iovec> parts) {
  while (readable_.empty() && !open_next()) {
    if (errno == EBADMSG) return -1;
    std::memmove(incoming_.data(), incoming_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    const ssize_t got = ::recv(socket_.get(), incoming_.data() + end_, incoming_.size() - end_, MSG_DONTWAIT);
    if (got <= 0) return got;
    end_ += static_cast<std::size_t>(got);
  }
  std::size_t taken = 0;
  for (const iovec& part : parts) {
    const std::size_t bytes = std::min(part.iov_len, readable_.size());
    std::memcpy(part.iov_base, readable_.data(), bytes);
    readable_ = readable_.subspan(bytes);
    taken += bytes;
  }
  return static_cast<ssize_t>(taken);
}

}  // namespace tutti
