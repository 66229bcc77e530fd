// Frames of an end: sending, receiving and the checks of what was received.
#include <algorithm>
#include <cstring>

#include "src/base/atomic.h"
#include "transports/net_plugin/end.h"

namespace tutti {
namespace {

constexpr int kMaxFrames = 4 * kNetFrames;  // Maximum frames at a time, so that other work proceeds.

}  // namespace

// ---- Sending ----

bool NetEnd::put(const MessageHead& head, const std::byte* data) {
  if (!connected() || message_ || leaving_ || !send_error_.empty()) return false;
  message_ = {.head = head, .data = data};
  const Status sent = send_frames();
  if (!sent.ok()) send_error_ = sent.message();
  return true;
}

void NetEnd::credit(std::uint32_t lane, std::uint64_t taken) {
  if (!leaving_) credits_[lane] = taken;
}

Status NetEnd::send_frames() {
  for (int frames = 0; frames < kMaxFrames; ++frames) {
    int bytes = 0;
    while (!sending_.idle()) {
      const bool done = TUTTI_TRY(sending_.test(bytes));
      if (!done) break;
      moved_ = true;
    }
    if (sending_.full()) return {};
    if (filled_bytes_ == 0) filled_bytes_ = fill_frame();
    if (filled_bytes_ == 0) return {};
    const bool begun = TUTTI_TRY(sending_.begin(filled_bytes_));
    if (!begun) return {};
    filled_bytes_ = 0;
    moved_ = true;
  }
  return {};
}

// Writes the next frame. Returns its size, or 0 if there is nothing to send.
std::size_t NetEnd::fill_frame() {
  std::byte* frame = sending_.frame(sending_.begun());
  NetFrameHead head;
  head.token = peer_.token;
  std::byte* at = frame + sizeof head;
  for (; !credits_.empty() && head.credits < kMaxNetCredits; ++head.credits, at += sizeof(NetCredit)) {
    const auto [lane, taken] = *credits_.begin();
    const NetCredit credit = {taken, lane, 0};
    std::memcpy(at, &credit, sizeof credit);
    credits_.erase(credits_.begin());
  }
  if (message_) {
    Message& message = *message_;
    head.message = message.head;
    head.has_part = 1;
    head.offset = message.sent;
    head.part_bytes = std::min(message.head.bytes - message.sent, static_cast<std::uint32_t>(kMaxNetPartBytes));
    if (head.part_bytes > 0) std::memcpy(at, message.data + message.sent, head.part_bytes);
    at += head.part_bytes;
    message.sent += head.part_bytes;
    if (message.sent == message.head.bytes) {
      left_.emplace_back(message.head.lane, message.head.number + 1);
      message_.reset();
    }
  } else if (head.credits == 0) {
    if (!leaving_ || goodbyes_ == kNetFrames) return 0;
    head.is_goodbye = 1;
    ++goodbyes_;
  }
  std::memcpy(frame, &head, sizeof head);
  return static_cast<std::size_t>(at - frame);
}

// ---- Receiving ----

Status NetEnd::post_receives() {
  while (!receiving_.full() && !peer_left_) {
    const bool begun = TUTTI_TRY(receiving_.begin(kNetFrameBytes));
    if (!begun) break;
  }
  return {};
}

// Errors are kept, because advance() is called again after them. Errors of the plugin are reported after what has
// arrived before, frames that the other end must not send at once.
Status NetEnd::receive_frames(CarrierEvents& events) {
  for (int frames = 0; frames < kMaxFrames && receive_error_.empty(); ++frames) {
    if (Status posted = post_receives(); !posted.ok()) receive_error_ = posted.message();
    if (receiving_.idle()) return {};
    const std::byte* frame = receiving_.frame(receiving_.done());
    int bytes = -1;
    Result<bool> done = receiving_.test(bytes);
    if (!done.ok()) receive_error_ = std::move(done).status().message();
    if (!receive_error_.empty() || !done.value()) return {};
    moved_ = true;
    Status handled = handle_frame(frame, bytes, events);
    if (!handled.ok()) {
      receive_error_ = handled.message();
      return handled;
    }
  }
  return {};
}

Status NetEnd::handle_frame(const std::byte* frame, int bytes, CarrierEvents& events) {
  NetFrameHead head;
  std::memcpy(&head, frame, sizeof head);
  if (bytes < static_cast<int>(sizeof head) || head.token != own_.token)
    return remote_error("received a frame that is not from the peer, or damaged");
  const std::size_t needed = sizeof head + std::size_t{head.credits} * sizeof(NetCredit) + head.part_bytes;
  if (head.credits > kMaxNetCredits || head.part_bytes > kMaxNetPartBytes || needed != static_cast<std::size_t>(bytes))
    return remote_error("received a frame of " + std::to_string(bytes) + " bytes whose parts have " +
                        std::to_string(needed));
  const std::byte* at = frame + sizeof head;
  for (std::uint32_t i = 0; i < head.credits; ++i, at += sizeof(NetCredit)) {
    NetCredit credit;
    std::memcpy(&credit, at, sizeof credit);
    TUTTI_CHECK_OK(events.credited(credit.lane, credit.taken));
  }
  if (head.is_goodbye != 0 && !std::exchange(peer_left_, true)) {
    leaving_ = true;  // Answers with goodbyes. The peer reads nothing else.
    message_.reset();
    credits_.clear();
  }
  return head.has_part != 0 ? handle_part(head, at, events) : Status();
}

Status NetEnd::handle_part(const NetFrameHead& head, const std::byte* part, CarrierEvents& events) {
  const MessageHead& message = head.message;
  const auto found = reading_.find(message.lane);
  if (found == reading_.end()) {
    if (message.lane >= next_reading_) return remote_error("received a message for an unknown lane");
    return {};  // The lane was forgotten, so the message is dropped.
  }
  Reading& lane = found->second;
  if (message.number != lane.next || head.offset != lane.received || message.bytes > lane.view.slot_bytes ||
      head.offset > message.bytes || head.part_bytes > message.bytes - head.offset)
    return remote_error("received a message in the wrong order, or longer than its slot");
  if (message.number - load_acquire(&lane.view.credits->taken) >= HalfLane::kSlots)
    return remote_error("received a message without a free slot for it");
  if (head.part_bytes > 0) std::memcpy(slot_of(lane.view, message.number) + head.offset, part, head.part_bytes);
  lane.received += head.part_bytes;
  if (lane.received < message.bytes) return {};
  lane.received = 0;
  ++lane.next;
  return events.arrived(message);
}

}  // namespace tutti
