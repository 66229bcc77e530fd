#include "src/messages/link.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

constexpr std::size_t kStagedBytes = 32 * 1024;
constexpr std::uint64_t kReceivedAtOnce = 1U << 20;
constexpr std::uint64_t kMaxCount = 1ULL << 40;  // As in the API; products with the size of an element do not overflow.

Status lost(const char* action, Rank peer) {
  return remote_error(system_error(std::string(action) + " rank " + std::to_string(peer)).message());
}

Status check(const MessageFrame& frame, Rank peer) {
  const bool sound = frame.version == kMessageFrameVersion && frame.kind >= MessageFrameKind::eager &&
                     frame.kind <= MessageFrameKind::goodbye && frame.type < kDataTypes && frame.count <= kMaxCount &&
                     (frame.kind != MessageFrameKind::eager || message_bytes(frame) <= kMaxEagerBytes);
  return sound ? Status() : internal_error("rank " + std::to_string(peer) + " sent an invalid message header");
}

}  // namespace

void MessageLink::connect(AcceptedPeer accepted, Protection protection) {
  written_ = missing_ = 0;
  begin_ = end_ = 0;
  opened_ = !accepted.opened_by_us;
  stream_.emplace(std::move(accepted.socket), Seal{protection, accepted.session}, accepted.opened_by_us);
  staging_.resize(kStagedBytes);
  if (!opened_) return;
  MessageFrame welcome;
  welcome.kind = MessageFrameKind::welcome;
  queue_.push_front({welcome, nullptr});
}

void MessageLink::disconnect() {
  stream_.reset();
  opened_ = false;
  staging_ = {};
}

// Removes and returns the first frame that satisfies `matches`; nullopt if it is absent, or a part of it has been sent.
template <typename Matches>
std::optional<OutgoingFrame> MessageLink::take_first(const Matches& matches) {
  const auto found = std::find_if(queue_.begin(), queue_.end(), matches);
  if (found == queue_.end() || (found == queue_.begin() && written_ > 0)) return std::nullopt;
  OutgoingFrame outgoing = std::move(*found);
  queue_.erase(found);
  return outgoing;
}

std::optional<OutgoingFrame> MessageLink::withdraw(const MessageRequest& request) {
  return take_first([&](const OutgoingFrame& outgoing) { return outgoing.request.get() == &request; });
}

bool MessageLink::withdraw_announcement(std::uint64_t number) {
  const auto announces = [number](const OutgoingFrame& outgoing) {
    return outgoing.frame.kind == MessageFrameKind::announced && outgoing.frame.number == number;
  };
  return take_first(announces).has_value();
}

ssize_t MessageLink::send_front() {
  const OutgoingFrame& front = queue_.front();
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  if (written_ < sizeof front.frame) {
    const auto* header = reinterpret_cast<const std::byte*>(&front.frame) + written_;
    parts[count++] = {const_cast<std::byte*>(header), sizeof front.frame - written_};
  }
  const std::uint64_t sent = written_ - std::min<std::uint64_t>(written_, sizeof front.frame);
  const std::uint64_t payload = front.bytes() - sizeof front.frame - sent;
  if (payload > 0) parts[count++] = {front.request->call().data + sent, payload};
  return stream_->send({parts.data(), count}, front.bytes() - written_);
}

Status MessageLink::push(std::vector<RequestPointer>& sent) {
  while (opened_ && !queue_.empty()) {
    const ssize_t bytes = send_front();
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (bytes < 0) return lost("send to", peer_);
    written_ += static_cast<std::uint64_t>(bytes);
    if (written_ < queue_.front().bytes()) continue;
    if (queue_.front().request) sent.push_back(std::move(queue_.front().request));
    queue_.pop_front();
    written_ = 0;
  }
  return !opened_ || stream_->flush() ? Status() : lost("send to", peer_);
}

std::vector<RequestPointer> MessageLink::take_unsent() {
  written_ = 0;
  return take_unbegun();
}

std::vector<RequestPointer> MessageLink::take_unbegun() {
  std::vector<RequestPointer> requests;
  while (queue_.size() > (written_ > 0 ? 1 : 0)) {
    if (queue_.back().request) requests.push_back(std::move(queue_.back().request));
    queue_.pop_back();
  }
  std::reverse(requests.begin(), requests.end());
  return requests;
}

Result<bool> MessageLink::receive(MessageFrameHandler& handler) {
  for (std::uint64_t received = 0; received < kReceivedAtOnce || stream_->has_more();) {
    std::array<iovec, 2> parts;
    std::size_t count = 0;
    if (missing_ > 0) parts[count++] = {at_, missing_};
    parts[count++] = {staging_.data() + end_, staging_.size() - end_};
    const ssize_t bytes = stream_->receive({parts.data(), count});
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (bytes < 0) return lost("receive from", peer_);
    if (bytes == 0) return false;
    received += static_cast<std::uint64_t>(bytes);
    const std::uint64_t direct = std::min<std::uint64_t>(missing_, static_cast<std::uint64_t>(bytes));
    at_ += direct;
    missing_ -= direct;
    end_ += static_cast<std::size_t>(bytes) - direct;
    if (direct > 0 && missing_ == 0) TUTTI_CHECK_OK(handler.end_frame(peer_, frame_));
    TUTTI_CHECK_OK(parse(handler));
  }
  return true;
}

// Leaves only an incomplete header in staging_.
Status MessageLink::parse(MessageFrameHandler& handler) {
  while (missing_ == 0 && end_ - begin_ >= sizeof frame_) {
    std::memcpy(&frame_, staging_.data() + begin_, sizeof frame_);
    begin_ += sizeof frame_;
    TUTTI_CHECK_OK(check(frame_, peer_));
    opened_ = opened_ || frame_.kind == MessageFrameKind::welcome;
    received_goodbye_ = received_goodbye_ || frame_.kind == MessageFrameKind::goodbye;
    at_ = TUTTI_TRY(handler.begin_frame(peer_, frame_));
    missing_ = has_payload(frame_) ? message_bytes(frame_) : 0;
    const std::uint64_t staged = std::min<std::uint64_t>(missing_, end_ - begin_);
    if (staged > 0) std::memcpy(at_, staging_.data() + begin_, staged);
    begin_ += staged;
    at_ += staged;
    missing_ -= staged;
    if (missing_ == 0) TUTTI_CHECK_OK(handler.end_frame(peer_, frame_));
  }
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  return {};
}

}  // namespace tutti
