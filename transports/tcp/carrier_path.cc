// Messages and credits that use a carrier, and how both ends agree on the carrier.
#include <algorithm>
#include <cstring>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "transports/tcp/connection.h"

namespace tutti {
namespace {

constexpr std::int64_t kMaxDeferralMs = 100;

}  // namespace

// ---- Agreeing ----

// Queues the first frame, which offers a carrier or none.
void TcpConnection::send_carrier_offer() {
  std::vector<std::byte> payload;
  if (carrier_) {
    const std::string name = carrier_->name();
    const std::vector<std::byte> address = carrier_->address();
    const auto* text = reinterpret_cast<const std::byte*>(name.c_str());
    payload.assign(text, text + name.size() + 1);
    payload.insert(payload.end(), address.begin(), address.end());
  }
  notify(TcpFrameKind::carrier, 0, 0, std::move(payload));
  if (!carrier_) set_data_path(DataPath::tcp);
}

// An end without a carrier has reported that in its first frame and needs no answer.
Status TcpConnection::handle_carrier_offer(const TcpFrameHeader& header, const std::byte* payload) {
  if (met_) return remote_error("a carrier was offered twice");
  met_ = true;
  if (!carrier_) return {};
  const auto* end = payload + header.bytes;
  const auto* zero = std::find(payload, end, std::byte{0});
  const std::string name(reinterpret_cast<const char*>(payload), static_cast<std::size_t>(zero - payload));
  if (zero == end || name != carrier_->name()) {
    const std::string theirs = name.empty() || zero == end ? "only tcp" : name;
    if (requires_carrier_) {
      broken_ = unsupported(advised("this rank must use " + carrier_->describe() + ", but its peer offers " + theirs));
    } else {
      set_data_path(DataPath::tcp);
    }
    return {};
  }
  Status connected = carrier_->connect({zero + 1, end});
  reaches_ = connected.ok();
  notify(TcpFrameKind::reaches, 0, 0, {}, reaches_ ? 1 : 0);
  if (!reaches_ && requires_carrier_) broken_ = Status(connected.code(), advised(connected.message()));
  return {};
}

Status TcpConnection::choose_data_path(bool other_reaches) {
  if (!met_ || data_path_ != DataPath::open)
    return remote_error("the peer switched to a transport that was not offered");
  if (broken_) return {};  // No data may leave by TCP meanwhile.
  if (!other_reaches && requires_carrier_) {
    broken_ = unsupported(advised("the other end cannot reach " + carrier_->describe() + "; see its error"));
    return {};
  }
  set_data_path(reaches_ && other_reaches ? DataPath::carrier : DataPath::tcp);
  if (data_path_ != DataPath::carrier) return {};
  for (const auto& [number, half] : lanes_.reading()) TUTTI_CHECK_OK(register_reader(number, *half));
  return {};
}

void TcpConnection::set_data_path(DataPath data_path) {
  data_path_ = data_path;
  again_ = true;
  for (const auto& [number, half] : lanes_.writing()) half->ready = data_path == DataPath::tcp;
}

Status TcpConnection::register_reader(std::uint32_t number, HalfLane& reading) {
  std::vector<std::byte> landing = TUTTI_TRY(carrier_->register_reader(number, reading));
  notify(TcpFrameKind::landing, reading.context, number, std::move(landing));
  return {};
}

Status TcpConnection::accept_landing(const TcpFrameHeader& header, const std::byte* payload) {
  if (data_path_ != DataPath::carrier) return remote_error("received a landing without a carrier");
  HalfLane* half = TUTTI_TRY(lanes_.find_writing(header.lane));
  if (half == nullptr) return {};
  if (half->ready) return remote_error("received a landing twice");
  TUTTI_CHECK_OK(carrier_->attach(header.lane, *half, {payload, header.bytes}));
  half->ready = true;
  again_ = true;
  return {};
}

// ---- Carrying ----

// Adds the advice unless the carrier has worked: then its choice did not cause the failure.
std::string TcpConnection::advised(const std::string& why) const {
  return carried_ || instead_.empty() ? why : why + "; " + instead_;
}

Status TcpConnection::move_by_carrier() {
  if (broken_) return std::move(*std::exchange(broken_, std::nullopt));
  TUTTI_CHECK_OK(carrier_->advance(*this));
  for (const auto& [number, half] : lanes_.writing()) {
    HalfLane& lane = *half;
    if (!lane.ready) continue;
    const std::uint64_t posted = load_acquire(&lane.view.words->posted);
    for (; lane.carried < posted; ++lane.carried) {
      MessageHead head;
      head.lane = number;
      head.number = lane.carried;
      head.bytes = load_relaxed(&lane.view.words->lengths[lane.carried % kMaxLengths]);
      head.signature = load_relaxed(&lane.view.words->signatures[lane.carried % kMaxSlots]);
      const bool taken = TUTTI_TRY(carrier_->put(head, slot_of(lane.view, lane.carried)));
      if (!taken) return {};
      ++moves_;
    }
  }
  for (const auto& [number, half] : lanes_.reading()) {
    if (!owes_credits(*half)) continue;
    const std::uint64_t taken = half->consumed();
    const bool reported = TUTTI_TRY(carrier_->credit(number, taken));
    if (!reported) return {};
    ++moves_;
    half->reported = taken;
    half->send_all = false;
  }
  return {};
}

// Also delivers messages that the carrier holds back, within the time that a note may wait for messages.
Status TcpConnection::advance_carrier() {
  const Deadline deadline = Deadline::after_ms(kMaxDeferralMs);
  do {
    TUTTI_CHECK_OK(carrier_->advance(*this));
  } while (carrier_->defers_messages() && !deadline.passed());
  return {};
}

// Delivers what the other end has put before it left or died. Returns true once nothing more can arrive. A carrier that
// can no longer send may still receive.
bool TcpConnection::finish_carrier() {
  const bool works = carrier_->advance(*this).ok();
  return !carrier_->expects_messages() && !(works && carrier_->defers_messages());
}

Status TcpConnection::arrived(const MessageHead& head) {
  carried_ = true;
  HalfLane* half = TUTTI_TRY(lanes_.find_reading(head.lane));
  if (half == nullptr) return {};
  HalfLane& lane = *half;
  if (head.bytes > lane.spec.slot_bytes || head.number != lane.carried)
    return remote_error("received a message in the wrong order, or longer than its slot");
  if (lane.carried - lane.consumed() >= HalfLane::kSlots)
    return remote_error("received a message without a free slot for it");
  deliver(lane, head.bytes, head.signature);
  return {};
}

Status TcpConnection::credited(std::uint32_t number, std::uint64_t taken) {
  HalfLane* half = TUTTI_TRY(lanes_.find_writing(number));
  if (half == nullptr) return {};
  HalfLane& lane = *half;
  if (taken < lane.reported || taken > lane.carried)
    return remote_error("received credits for messages that were not sent");
  lane.reported = taken;
  carried_ = carried_ || data_path_ == DataPath::carrier;
  ++moves_;
  // Slots that the carrier may have to read again are not free yet.
  store_release(&lane.view.credits->taken, data_path_ == DataPath::carrier ? std::min(taken, lane.left) : taken);
  return {};
}

void TcpConnection::left(std::uint32_t number, std::uint64_t messages) {
  for (LaneTable::Ended& ended : lanes_.ended()) {
    for (const auto& [other, half] : ended.writing) {
      if (other == number) half->left = messages;
    }
  }
  const auto half = lanes_.find_writing(number);
  if (!half.ok() || half.value() == nullptr) return;
  HalfLane& lane = *half.value();
  lane.left = messages;
  ++moves_;
  store_release(&lane.view.credits->taken, std::min(lane.reported, lane.left));
}

}  // namespace tutti
