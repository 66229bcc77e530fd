#include "transports/ucx/end.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>

#include "transports/ucx/engine.h"

namespace tutti {

Result<std::unique_ptr<UcxEnd>> UcxEnd::make(UcxEngine& engine, std::uint64_t token) {
  std::unique_ptr<UcxEnd> end(new UcxEnd(engine, token));
  end->own_event_ = File(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  end->epoll_ = File(::epoll_create1(EPOLL_CLOEXEC));
  if (!end->own_event_ || !end->epoll_)
    return system_error("make a descriptor for UCX (raise the limit with ulimit -n)");
  for (const int descriptor : {engine.descriptor(), end->own_event_.get()}) {
    epoll_event readable = {.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(end->epoll_.get(), EPOLL_CTL_ADD, descriptor, &readable) != 0)
      return system_error("poll UCX events");
  }
  return end;
}

// ---- Connecting ----

std::vector<std::byte> UcxEnd::address() const {
  const std::vector<std::byte>& worker = engine_.address();
  const UcxAddressHead head = {.bytes = static_cast<std::uint32_t>(worker.size()), .token = token_};
  std::vector<std::byte> all(sizeof head + worker.size());
  std::memcpy(all.data(), &head, sizeof head);
  std::memcpy(all.data() + sizeof head, worker.data(), worker.size());
  return all;
}

Status UcxEnd::connect(std::span<const std::byte> address) {
  UcxAddressHead head;
  if (address.size() >= sizeof head) std::memcpy(&head, address.data(), sizeof head);
  if (address.size() < sizeof head || head.bytes == 0 || head.bytes != address.size() - sizeof head)
    return remote_error("received a malformed UCX address");
  if (head.version != kUcxVersion)
    return remote_error("the peer runs another version of tutti (UCX address version " + std::to_string(head.version) +
                        ")");
  if (endpoint_ != nullptr) return internal_error("two addresses for one end of UCX");
  peer_token_ = head.token;
  // UCX requires alignment.
  std::vector<std::uint64_t> aligned((head.bytes + 7) / 8);
  std::memcpy(aligned.data(), address.data() + sizeof head, head.bytes);
  ucp_ep_params_t how = {};
  how.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  how.address = reinterpret_cast<const ucp_address_t*>(aligned.data());
  how.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  how.err_handler.arg = this;
  how.err_handler.cb = [](void* end, ucp_ep_h, ucs_status_t status) {
    static_cast<UcxEnd*>(end)->fail(explain_ucx(status));
  };
  const UcxLogScope log_scope;
  const ucs_status_t status = ucx().ep_create(engine_.worker(), &how, &endpoint_);
  if (status == UCS_OK) return {};
  endpoint_ = nullptr;
  return unsupported("UCX does not reach the other end: " + explain_ucx(status) +
                     "; see what UCX_TLS and UCX_NET_DEVICES leave it");
}

void UcxEnd::fail(const std::string& why) {
  if (error_.empty()) error_ = "UCX: " + why;
  signal_event();
}

// ---- Reporting to the connection ----

Status UcxEnd::notify(CarrierEvents& events) {
  armed_ = false;
  if (std::exchange(signalled_, false)) {
    std::uint64_t rings = 0;
    (void)!::read(own_event_.get(), &rings, sizeof rings);
  }
  for (Reading* lane : arrived_) {
    lane->has_notifications = false;
    for (Arrival* next = &lane->arrivals[lane->next % kSlots]; next->state == Arrival::State::there;
         next = &lane->arrivals[lane->next % kSlots]) {
      next->state = Arrival::State::none;
      ++lane->next;
      TUTTI_CHECK_OK(events.arrived(next->head));
    }
  }
  arrived_.clear();
  pass_on();
  for (Writing* lane : left_) {
    lane->has_left = false;
    events.left(lane->number, lane->left);
  }
  left_.clear();
  for (Writing* lane : credited_) {
    lane->has_credit = false;
    TUTTI_CHECK_OK(events.credited(lane->number, lane->credited));
  }
  credited_.clear();
  return error_.empty() ? Status() : remote_error(error_);
}

// ---- Waiting ----

bool UcxEnd::arm() {
  const bool idle =
      arrived_.empty() && left_.empty() && credited_.empty() && error_.empty() && (passing_ || !unpassed_);
  armed_ = idle && engine_.arm();
  return armed_;
}

// Wakes a thread that waits for this end, after another thread has received its data.
void UcxEnd::signal_event() {
  if (!std::exchange(armed_, false)) return;
  const std::uint64_t once = 1;
  signalled_ = ::write(own_event_.get(), &once, sizeof once) == sizeof once;
}

// ---- Closing ----

bool UcxEnd::send_pong() {
  return !error_.empty() || endpoint_ == nullptr || send_control(pong_, {.kind = UcxControlKind::pong});
}

bool UcxEnd::can_close() {
  if (endpoint_ == nullptr || !error_.empty()) return true;
  pass_on();
  if (!flushed()) return false;
  if (closing_) return true;
  if (count_received_ == count_put_ || peer_closed_) {
    closing_ = send_control(goodbye_, {.kind = UcxControlKind::goodbye});
  } else if (!requested_) {
    requested_ = send_control(ping_, {.kind = UcxControlKind::ping});
  }
  return false;
}

// Aborts outstanding operations.
void UcxEnd::close() {
  if (endpoint_ == nullptr) return;
  ucp_request_param_t how = {};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const UcxLogScope log_scope;
  close_request_ = ucx().ep_close_nbx(endpoint_, &how);
  if (UCS_PTR_IS_PTR(close_request_)) return;
  close_request_ = nullptr;
  endpoint_ = nullptr;
}

bool UcxEnd::closed() {
  if (close_request_ != nullptr && ucx().request_check_status(close_request_) != UCS_INPROGRESS) {
    ucx().request_free(std::exchange(close_request_, nullptr));
    endpoint_ = nullptr;
  }
  return endpoint_ == nullptr && busy_ == 0 && !passing_;
}

// ---- Lanes ----

UcxLanding UcxEnd::register_reader(std::uint32_t number, const HalfLane& half) {
  const UcxEngine::Registered slots = engine_.registered(half.memory.slots);
  Reading& lane = reading_[number];
  lane.end = this;
  lane.memory = half.memory.slots;
  lane.view = half.view;
  lane.registered = slots.handle;
  lane.type = slots.type;
  lane.on_device = slots.on_device;
  for (Arrival& arrival : lane.arrivals) arrival.lane = &lane;
  next_reading_ = std::max(next_reading_, number + 1);
  arrived_.reserve(reading_.size());
  return {.on_device = slots.on_device ? 1U : 0U};
}

void UcxEnd::attach(std::uint32_t number, const HalfLane& half, const UcxLanding& landing) {
  const UcxEngine::Registered slots = engine_.registered(half.memory.slots);
  Writing& lane = writing_[number];
  lane.end = this;
  lane.number = number;
  lane.memory = half.memory.slots;
  lane.registered = slots.handle;
  lane.type = slots.type;
  lane.on_device = slots.on_device || landing.on_device != 0;
  for (Sending& sending : lane.sending) sending.lane = &lane;
  next_writing_ = std::max(next_writing_, number + 1);
  for (auto* list : {&over_, &left_, &credited_}) list->reserve(writing_.size());
}

bool UcxEnd::Reading::busy() const {
  return credit.busy || std::any_of(arrivals.begin(), arrivals.end(),
                                    [](const Arrival& arrival) { return arrival.state == Arrival::State::coming; });
}

std::vector<LaneMemory> UcxEnd::forget(std::uint32_t number, LaneEnd which) {
  std::vector<LaneMemory> freed;
  if (which == LaneEnd::writer) {
    const auto found = writing_.find(number);
    if (found == writing_.end()) return freed;
    for (auto* list : {&over_, &left_, &credited_}) std::erase(*list, &found->second);
    freed.push_back(std::move(found->second.memory));
    writing_.erase(found);
    return freed;
  }
  const auto found = reading_.find(number);
  if (found == reading_.end()) return freed;
  std::erase(arrived_, &found->second);
  found->second.forgotten = true;
  closing_lanes_.push_back(reading_.extract(found));
  std::erase_if(closing_lanes_, [&freed](auto& lane) {
    if (lane.mapped().busy()) return false;
    freed.push_back(std::move(lane.mapped().memory));
    return true;
  });
  return freed;
}

}  // namespace tutti
