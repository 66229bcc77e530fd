// Sending side of a connection: messages of lanes, credits, and queued frames.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "transports/tcp/connection.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxVectors = 32;
constexpr std::int64_t kHoldNs = 100'000'000;

}  // namespace

void TcpConnection::put(TcpFrameHeader header, std::uint32_t context, const std::byte* data,
                        std::vector<std::byte> own) {
  if (data == nullptr) header.bytes = static_cast<std::uint32_t>(own.size());
  header.check = check_of(header);
  outgoing_.push_back({header, data, std::move(own), context});
}

// Moves pending frames to outgoing_, up to kMaxOutgoing.
void TcpConnection::collect() {
  if (first_ == outgoing_.size()) {
    outgoing_.clear();
    first_ = 0;
  }
  while (!unsent_.empty() && outgoing_.size() < kMaxOutgoing) {
    if (overtakes(unsent_.front())) return;
    put(unsent_.front().header, unsent_.front().context, nullptr, std::move(unsent_.front().own));
    unsent_.pop_front();
  }
  if (!unsent_.empty() || data_path_ != DataPath::tcp) return;
  for (const auto& [number, half] : lanes_.writing()) {
    HalfLane& lane = *half;
    const std::uint64_t posted = load_acquire(&lane.view.words->posted);
    for (; lane.carried < posted && outgoing_.size() < kMaxOutgoing; ++lane.carried) {
      TcpFrameHeader header;
      header.lane = number;
      header.number = lane.carried;
      header.bytes = load_relaxed(&lane.view.words->lengths[lane.carried % kMaxLengths]);
      header.signature = load_relaxed(&lane.view.words->signatures[lane.carried % kMaxSlots]);
      put(header, lane.context, slot_of(lane.view, lane.carried));
    }
  }
  for (const auto& [number, half] : lanes_.reading()) {
    if (outgoing_.size() == kMaxOutgoing) return;
    if (!owes_credits(*half)) continue;
    TcpFrameHeader header;
    header.kind = TcpFrameKind::credit;
    header.lane = number;
    header.number = half->reported = half->consumed();
    half->send_all = false;
    put(header, half->context, nullptr);
  }
}

// Returns true if a note must wait because messages and credits put before it are still in flight on the carrier. A
// rank that is notified of a failure or a departure looks for the last messages of that peer. The wait is bounded,
// since other lanes keep the carrier busy.
bool TcpConnection::overtakes(const Outgoing& frame) {
  const TcpFrameKind kind = frame.header.kind;
  if (data_path_ != DataPath::carrier || lost() || (kind != TcpFrameKind::note && kind != TcpFrameKind::closed))
    return false;
  const LaneTable::Numbers& reading = lanes_.reading();
  const auto owes = [&](const LaneTable::Numbered& lane) {
    return lane.half->context == frame.context && lane.half->send_all;
  };
  const std::int64_t now = now_ns();
  if (holding_since_ns_ == 0) holding_since_ns_ = now;
  const bool waits = !carrier_->acknowledged() || std::any_of(reading.begin(), reading.end(), owes);
  if (waits && now - holding_since_ns_ < kHoldNs) return true;
  holding_since_ns_ = 0;
  return false;
}

void TcpConnection::notify(TcpFrameKind kind, std::uint32_t context, std::uint32_t lane, std::vector<std::byte> payload,
                           std::uint64_t number) {
  TcpFrameHeader header;
  header.kind = kind;
  header.context = context;
  header.lane = lane;
  header.number = number;
  unsent_.push_back({header, nullptr, std::move(payload), context});
}

// Returns true if the lane has enough new credits for a frame of their own.
bool TcpConnection::owes_credits(const HalfLane& reading) {
  const std::uint64_t owed = reading.consumed() - reading.reported;
  return owed >= (reading.send_all ? 1 : HalfLane::kSlots / 2);
}

void TcpConnection::send_credits() {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, half] : lanes_.reading()) half->send_all = half->consumed() != half->reported;
  exchange();
}

bool TcpConnection::flush() {
  if (!stream_.flush()) (void)fails(errno);
  return false;
}

// Handles an error of send(). Returns true if the caller should retry.
bool TcpConnection::fails(int error) {
  if (error == EAGAIN || error == EINTR) return error == EINTR;
  while (!has_ended() && receive_some()) {  // Reads the last notes of the other end, if any.
  }
  end_connection(std::strerror(error));
  return false;
}

bool TcpConnection::send_some() {
  collect();
  if (first_ == outgoing_.size()) return flush();
  std::array<iovec, kMaxVectors> vectors;
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
  const ssize_t sent = stream_.send({vectors.data(), count}, total);
  if (sent < 0) return fails(errno);
  ++moves_;
  written_ += static_cast<std::size_t>(sent);
  while (first_ < outgoing_.size() && written_ >= sizeof(TcpFrameHeader) + outgoing_[first_].header.bytes)
    written_ -= sizeof(TcpFrameHeader) + outgoing_[first_++].header.bytes;
  return static_cast<std::size_t>(sent) == total || stream_.takes_more();
}

}  // namespace tutti
