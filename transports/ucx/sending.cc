// Sending side of an end: messages, control words, and the flush that completes them.
#include <utility>

#include "transports/ucx/end.h"
#include "transports/ucx/request.h"

namespace tutti {

Status UcxEnd::put(const MessageHead& head, const std::byte* data) {
  if (!error_.empty()) return remote_error(error_);
  const auto found = writing_.find(head.lane);
  TUTTI_ASSERT(found != writing_.end());
  Writing& lane = found->second;
  TUTTI_ASSERT(head.number - lane.left < kSlots);
  Sending& sending = lane.sending[head.number % kSlots];
  sending.message = {peer_token_, head};
  ucp_request_param_t how = begun<ucp_send_nbx_callback_t>(
      [](void* request, ucs_status_t status, void* about) {
        auto& sent = *static_cast<Sending*>(about);
        ucx().request_free(request);
        sent.lane->end->over(sent, status);
      },
      &sending);
  use(how, lane);
  if (lane.on_device && head.bytes > 0) {  // Rendezvous, so that no CPU copies the data.
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_AM_SEND_FLAG_RNDV;
  }
  ++busy_;
  ++count_put_;
  const UcxLogScope log_scope;
  const ucs_status_ptr_t begun_send =
      ucx().am_send_nbx(endpoint_, kUcxMessage, &sending.message, sizeof sending.message, data, head.bytes, &how);
  if (begun_send == nullptr || UCS_PTR_IS_ERR(begun_send)) over(sending, UCS_PTR_STATUS(begun_send));
  return error_.empty() ? Status() : remote_error(error_);
}

// Sends may complete in a different order than they were begun.
void UcxEnd::over(Sending& sending, ucs_status_t status) {
  --busy_;
  if (status != UCS_OK) return fail(explain_ucx(status));
  sending.over = true;
  unpassed_ = true;
  Writing& lane = *sending.lane;
  while (lane.sending[lane.over % kSlots].over) lane.sending[lane.over++ % kSlots].over = false;
  if (!std::exchange(lane.has_over, true)) over_.push_back(&lane);
  signal_event();
}

Result<bool> UcxEnd::credit(std::uint32_t number, std::uint64_t taken) {
  if (!error_.empty()) return remote_error(error_);
  const auto found = reading_.find(number);
  TUTTI_ASSERT(found != reading_.end());
  return send_control(found->second.credit, {.taken = taken, .lane = number, .kind = UcxControlKind::credit});
}

bool UcxEnd::send_control(ControlSend& send, UcxControl word) {
  if (std::exchange(send.busy, true)) return false;
  send.end = this;
  send.word = word;
  send.word.token = peer_token_;
  send.word.arrived = count_arrived_;
  const auto completed = [](void* request, ucs_status_t status, void* about) {
    auto& sent = *static_cast<ControlSend*>(about);
    if (request != nullptr) ucx().request_free(request);
    --sent.end->busy_;
    sent.busy = false;
    sent.end->unpassed_ = true;
    if (status != UCS_OK) sent.end->fail(explain_ucx(status));
  };
  const ucp_request_param_t how = begun<ucp_send_nbx_callback_t>(completed, &send);
  ++busy_;
  const UcxLogScope log_scope;
  const ucs_status_ptr_t sent =
      ucx().am_send_nbx(endpoint_, kUcxControl, &send.word, sizeof send.word, nullptr, 0, &how);
  if (sent == nullptr || UCS_PTR_IS_ERR(sent)) completed(nullptr, UCS_PTR_STATUS(sent), &send);
  return true;
}

// UCX may hold sent data in its own buffers, which are not flushed when this thread stops calling it. A flush completes
// when the data have left this process.
void UcxEnd::pass_on() {
  if (passing_ || !unpassed_ || endpoint_ == nullptr || !error_.empty()) return;
  unpassed_ = false;
  passing_ = true;
  for (auto& [number, lane] : writing_) lane.passing = lane.over;
  const auto done = [](void* request, ucs_status_t status, void* about) {
    ucx().request_free(request);
    static_cast<UcxEnd*>(about)->passed(status);
  };
  const ucp_request_param_t how = begun<ucp_send_nbx_callback_t>(done, this);
  const UcxLogScope log_scope;
  const ucs_status_ptr_t flush = ucx().ep_flush_nbx(endpoint_, &how);
  if (flush == nullptr || UCS_PTR_IS_ERR(flush)) passed(UCS_PTR_STATUS(flush));
}

void UcxEnd::passed(ucs_status_t status) {
  passing_ = false;
  if (status != UCS_OK) return fail(explain_ucx(status));
  for (Writing* lane : over_) {
    lane->left = lane->passing;
    if (!std::exchange(lane->has_left, true)) left_.push_back(lane);
  }
  std::erase_if(over_, [](Writing* lane) {
    lane->has_over = lane->left < lane->over;
    return !lane->has_over;
  });
  signal_event();
}

}  // namespace tutti
