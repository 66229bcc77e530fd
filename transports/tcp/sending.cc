// What a connection sends: messages of lanes and credits as they come to be, and what else was told.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/atomic.h"
#include "transports/tcp/connection.h"

namespace tutti {
namespace {

constexpr std::size_t kMostVectors = 32;

}  // namespace

void TcpConnection::put(WireHeader header, std::uint32_t context, const std::byte* data, std::vector<std::byte> own) {
  if (data == nullptr) header.bytes = static_cast<std::uint32_t>(own.size());
  header.check = check_of(header);
  outgoing_.push_back({header, data, std::move(own), context});
}

// Puts what is there to be sent in line, as far as the line goes.
void TcpConnection::collect() {
  if (first_ == outgoing_.size()) {
    outgoing_.clear();
    first_ = 0;
  }
  while (!untold_.empty() && outgoing_.size() < kMostOutgoing) {
    put(untold_.front().header, untold_.front().context, nullptr, std::move(untold_.front().own));
    untold_.pop_front();
  }
  if (!untold_.empty()) return;
  for (std::uint32_t number = 0; number < writing_.size(); ++number) {
    HalfLane& lane = *writing_[number];
    if (lane.memory == nullptr) continue;
    const std::uint64_t posted = load_acquire(&lane.view.words->posted);
    for (; lane.carried < posted && outgoing_.size() < kMostOutgoing; ++lane.carried) {
      WireHeader header;
      header.lane = number;
      header.number = lane.carried;
      header.bytes = load_relaxed(&lane.view.words->lengths[lane.carried % kMaxLengths]);
      header.signature = load_relaxed(&lane.view.words->signatures[lane.carried % kMaxSlots]);
      put(header, lane.context, slot_of(lane.view, lane.carried));
    }
  }
  for (std::uint32_t number = 0; number < reading_.size(); ++number) {
    if (outgoing_.size() == kMostOutgoing) return;
    if (const auto header = credits_of(number, HalfLane::kSlots / 2)) put(*header, reading_[number]->context, nullptr);
  }
}

// To be told, if there are so many.
std::optional<WireHeader> TcpConnection::credits_of(std::uint32_t number, std::uint64_t least) {
  HalfLane& lane = *reading_[number];
  if (lane.memory == nullptr) return std::nullopt;
  const std::uint64_t taken = load_acquire(&lane.view.credits->taken);
  if (taken - lane.told < least) return std::nullopt;
  WireHeader header;
  header.kind = WireKind::credit;
  header.lane = number;
  header.number = lane.told = taken;
  return header;
}

void TcpConnection::tell_credits() {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t number = 0; number < reading_.size(); ++number) {
    if (const auto header = credits_of(number, 1)) untold_.push_back({*header, nullptr, {}, reading_[number]->context});
  }
}

// Whether it is worth while to go on.
bool TcpConnection::send_some() {
  collect();
  if (first_ == outgoing_.size()) return false;
  std::array<iovec, kMostVectors> vectors;
  std::size_t count = 0, total = 0;
  std::size_t skip = written_;
  for (std::size_t i = first_; i < outgoing_.size() && count + 2 <= vectors.size(); ++i) {
    Outgoing& out = outgoing_[i];
    const std::byte* data = out.data != nullptr ? out.data : out.own.data();
    const std::pair<const void*, std::size_t> parts[] = {{&out.header, sizeof out.header}, {data, out.header.bytes}};
    for (const auto& [from, bytes] : parts) {
      const std::size_t dropped = std::min(skip, bytes);
      skip -= dropped;
      if (dropped == bytes) continue;
      vectors[count++] = {static_cast<char*>(const_cast<void*>(from)) + dropped, bytes - dropped};
      total += bytes - dropped;
    }
  }
  msghdr message = {};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    const int error = errno;
    if (error == EAGAIN || error == EINTR) return error == EINTR;
    while (!lost() && receive_some()) {  // Its last words, if there are any.
    }
    lose(std::strerror(error));
    return false;
  }
  written_ += static_cast<std::size_t>(sent);
  sent_ += static_cast<std::uint64_t>(sent);
  while (first_ < outgoing_.size() && written_ >= sizeof(WireHeader) + outgoing_[first_].header.bytes)
    written_ -= sizeof(WireHeader) + outgoing_[first_++].header.bytes;
  return static_cast<std::size_t>(sent) == total;
}

}  // namespace tutti
