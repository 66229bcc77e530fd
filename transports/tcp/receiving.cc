// Receiving side of a connection. All received data is checked before use; invalid data ends the connection.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/atomic.h"
#include "src/base/log.h"
#include "transports/tcp/connection.h"

namespace tutti {

// Receives message data directly into their slot, and other data into the staging buffer. Returns true if the caller
// should continue.
bool TcpConnection::receive_some() {
  std::byte* staging = staging_.data() + end_;
  const std::size_t room = staging_.size() - end_;
  const std::size_t direct = into_ != nullptr ? missing_ : 0;
  std::array<iovec, 2> parts = {{{at_, direct}, {staging, room}}};
  const ssize_t received = stream_.receive(std::span(parts).subspan(direct > 0 ? 0 : 1));
  if (received == 0) end_connection("the other end closed it");
  const int error = received < 0 ? errno : 0;
  if (error == EBADMSG)  // The other end only sees that this end closes, and may report it first.
    log(LogLevel::warn, "%s (%s)", kDamaged, route_.c_str());
  if (received < 0 && error != EAGAIN && error != EINTR)
    end_connection(error == EBADMSG ? kDamaged : std::strerror(error));
  if (received <= 0) return error == EINTR;
  ++moves_;
  const auto got = static_cast<std::size_t>(received);
  const std::size_t whole = direct + room;
  const std::size_t placed = std::min(got, direct);
  at_ += placed;
  missing_ -= placed;
  if (direct > 0 && missing_ == 0) end_message();
  end_ += got - placed;
  const Status parsed = parse();
  if (!parsed.ok()) end_connection(parsed.message());
  return !has_ended() && (got == whole || stream_.has_more());
}

Status TcpConnection::parse() {
  while (begin_ < end_) {
    const std::byte* from = staging_.data() + begin_;
    const std::size_t left = end_ - begin_;
    if (missing_ > 0) {
      const std::size_t bytes = std::min(left, missing_);
      if (into_ != nullptr) std::memcpy(at_, from, bytes);
      at_ += bytes;
      missing_ -= bytes;
      begin_ += bytes;
      if (missing_ == 0) end_message();
      continue;
    }
    TcpFrameHeader header;
    if (left < sizeof header) break;
    std::memcpy(&header, from, sizeof header);
    if (header.check != check_of(header) || header.version != kFrameVersion)
      return remote_error("received a damaged frame, or one of another version of tutti");
    if (header.kind == TcpFrameKind::message) {
      begin_ += sizeof header;
      TUTTI_CHECK_OK(begin_message(header));
      continue;
    }
    if (header.bytes > kMaxNoteBytes)
      return remote_error("received a note of " + std::to_string(header.bytes) + " bytes");
    if (left < sizeof header + header.bytes) break;
    TUTTI_CHECK_OK(handle_frame(header, from + sizeof header));
    begin_ += sizeof header + header.bytes;
  }
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  return {};
}

Status TcpConnection::handle_frame(const TcpFrameHeader& header, const std::byte* payload) {
  const bool follows = header.kind == TcpFrameKind::note || header.kind == TcpFrameKind::closed;
  if (follows && data_path_ == DataPath::carrier &&
      !broken_) {  // Data put before the note arrive first; the note may report a failure.
    Status advanced = advance_carrier();
    if (!advanced.ok()) broken_ = std::move(advanced);
  }
  switch (header.kind) {
    case TcpFrameKind::credit:
      if (data_path_ == DataPath::carrier) break;
      return credited(header.lane, header.number);
    case TcpFrameKind::lane: return accept_lane(header, payload);
    case TcpFrameKind::note: return accept_note(header, payload);
    case TcpFrameKind::carrier: return handle_carrier_offer(header, payload);
    case TcpFrameKind::reaches: return choose_data_path(header.number != 0);
    case TcpFrameKind::landing: return accept_landing(header, payload);
    case TcpFrameKind::closed:
      lanes_.close_there(header.context);
      reap_closed_lanes();
      return {};
    case TcpFrameKind::message: break;
  }
  return remote_error("received a message of an unknown kind");
}

Status TcpConnection::accept_note(const TcpFrameHeader& header, const std::byte* payload) {
  const std::uint32_t passes = header.lane;
  if (passes != 0 && (passes - next_context_) % 2 == 0)
    return remote_error("received a note with a context of this end");
  if (lanes_.closed_here(header.context)) {
    if (passes != 0) end_context(passes);
    reap_closed_lanes();
    return {};
  }
  notes_[header.context].push_back({{payload, payload + header.bytes}, passes});
  waiting_notes_.fetch_add(1);
  notes_so_far_.fetch_add(1);
  return {};
}

Status TcpConnection::accept_lane(const TcpFrameHeader& header, const std::byte* payload) {
  LaneSpec spec;
  if (header.bytes != sizeof spec) return remote_error("received a lane in the wrong order");
  std::memcpy(&spec, payload, sizeof spec);
  HalfLane* half = TUTTI_TRY(lanes_.accept(header.lane, header.context, spec));
  if (half == nullptr || data_path_ != DataPath::carrier) return {};
  return register_reader(header.lane, *half);
}

Status TcpConnection::begin_message(const TcpFrameHeader& header) {
  if (data_path_ == DataPath::carrier) return remote_error("received a message beside the carrier");
  into_ = TUTTI_TRY(lanes_.find_reading(header.lane));
  arriving_ = header;
  missing_ = header.bytes;
  if (into_ == nullptr) return {};  // The data are dropped as they arrive.
  HalfLane& lane = *into_;
  if (header.bytes > lane.spec.slot_bytes || header.number != lane.carried)
    return remote_error("received a message in the wrong order, or longer than its slot");
  if (lane.carried - lane.consumed() >= HalfLane::kSlots)
    return remote_error("received a message without a free slot for it");
  at_ = slot_of(lane.view, lane.carried);
  if (missing_ == 0) end_message();
  return {};
}

void TcpConnection::end_message() {
  if (into_ != nullptr) deliver(*std::exchange(into_, nullptr), arriving_.bytes, arriving_.signature);
}

void TcpConnection::deliver(HalfLane& lane, std::uint32_t bytes, std::uint32_t signature) {
  ++moves_;
  store_relaxed(&lane.view.words->lengths[lane.carried % kMaxLengths], bytes);
  store_relaxed(&lane.view.words->signatures[lane.carried % kMaxSlots], signature);
  store_release(&lane.view.words->posted, ++lane.carried);
}

}  // namespace tutti
