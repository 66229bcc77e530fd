// Receiving side of an end. All received values are checked before use.
#include <algorithm>
#include <cstring>

#include "src/base/atomic.h"
#include "transports/ucx/end.h"
#include "transports/ucx/engine.h"
#include "transports/ucx/request.h"

namespace tutti {

ucs_status_t UcxEnd::receive_message(const MessageHead& head, const Data& data) {
  const auto found = reading_.find(head.lane);
  if (found == reading_.end()) {
    if (head.lane >= next_reading_) fail("received a message for an unknown lane");
    ++count_arrived_;
    return UCS_OK;  // The lane was forgotten, so the message is dropped.
  }
  Reading& lane = found->second;
  Arrival& arrival = lane.arrivals[head.number % kSlots];
  if (head.bytes != data.bytes || head.bytes > lane.view.slot_bytes) {
    fail("received a message that is longer than its slot or its header");
    return UCS_OK;
  }
  const bool in_order = head.number - lane.next < kSlots && arrival.state == Arrival::State::none;
  if (!in_order || head.number - load_acquire(&lane.view.credits->taken) >= kSlots) {
    fail("received a message twice, or without a free slot for it");
    return UCS_OK;
  }
  arrival.head = head;
  if (data.is_rendezvous) return fetch(arrival, data);
  if (lane.on_device && data.bytes > 0) {
    fail("received a message that the peer should have kept until it is fetched");
    return UCS_OK;
  }
  if (data.bytes > 0) std::memcpy(slot_of(lane.view, head.number), data.at, data.bytes);
  ++busy_;
  complete_arrival(arrival, UCS_OK);
  return UCS_OK;
}

ucs_status_t UcxEnd::fetch(Arrival& arrival, const Data& data) {
  ucp_request_param_t how = begun<ucp_am_recv_data_nbx_callback_t>(
      [](void* request, ucs_status_t status, std::size_t, void* about) {
        auto& fetched = *static_cast<Arrival*>(about);
        ucx().request_free(request);
        fetched.lane->end->unpassed_ = true;  // A flush must send the completion to the writer, which waits for it.
        fetched.lane->end->complete_arrival(fetched, status);
      },
      &arrival);
  use(how, *arrival.lane);
  arrival.state = Arrival::State::coming;
  ++busy_;
  std::byte* slot = slot_of(arrival.lane->view, arrival.head.number);
  const ucs_status_ptr_t begun_fetch = ucx().am_recv_data_nbx(engine_.worker(), data.at, slot, data.bytes, &how);
  if (begun_fetch == nullptr || UCS_PTR_IS_ERR(begun_fetch)) complete_arrival(arrival, UCS_PTR_STATUS(begun_fetch));
  return UCS_INPROGRESS;  // UCX keeps the data until they are fetched.
}

void UcxEnd::complete_arrival(Arrival& arrival, ucs_status_t status) {
  --busy_;
  arrival.state = Arrival::State::none;
  if (status != UCS_OK) return fail(explain_ucx(status));
  ++count_arrived_;
  if (arrival.lane->forgotten) return;
  arrival.state = Arrival::State::there;
  if (!std::exchange(arrival.lane->has_notifications, true)) arrived_.push_back(arrival.lane);
  signal_event();
}

void UcxEnd::receive_control(const UcxControl& word) {
  count_received_ = std::max(count_received_, std::min(word.arrived, count_put_));
  switch (word.kind) {
    case UcxControlKind::ping: engine_.owe_pong(*this); return;
    case UcxControlKind::pong: requested_ = false; return;
    case UcxControlKind::goodbye: peer_closed_ = true; return;
    case UcxControlKind::credit: break;
    default: return fail("received an invalid control word");
  }
  const auto found = writing_.find(word.lane);
  if (found == writing_.end()) {
    if (word.lane >= next_writing_) fail("received credits for an unknown lane");
    return;
  }
  Writing& lane = found->second;
  lane.credited = std::max(lane.credited, word.taken);
  if (!std::exchange(lane.has_credit, true)) credited_.push_back(&lane);
  signal_event();
}

}  // namespace tutti
