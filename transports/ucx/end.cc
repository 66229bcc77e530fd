#include "transports/ucx/end.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>

#include "src/base/atomic.h"
#include "transports/ucx/engine.h"

namespace tutti {
namespace {

// Whatever UCX has begun calls `done` with `about`, but what is done at once.
template <typename Done>
ucp_request_param_t begun(Done done, void* about) {
  ucp_request_param_t how = {};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.user_data = about;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  if constexpr (std::is_same_v<Done, ucp_am_recv_data_nbx_callback_t>) {
    how.cb.recv_am = done;
  } else {
    how.cb.send = done;
  }
  return how;
}

// For data in the slots of a lane.
template <typename Lane>
void use(ucp_request_param_t& how, const Lane& lane) {
  how.memory_type = lane.type;
  if (lane.registered == nullptr) return;
  how.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  how.memh = lane.registered;
}

}  // namespace

Result<std::unique_ptr<UcxEnd>> UcxEnd::make(UcxEngine& engine, std::uint64_t token) {
  std::unique_ptr<UcxEnd> end(new UcxEnd(engine, token));
  end->bell_ = File(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  end->both_ = File(::epoll_create1(EPOLL_CLOEXEC));
  if (!end->bell_ || !end->both_) return system_error("make a descriptor for UCX (raise the limit with ulimit -n)");
  for (const int descriptor : {engine.descriptor(), end->bell_.get()}) {
    epoll_event readable = {.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(end->both_.get(), EPOLL_CTL_ADD, descriptor, &readable) != 0)
      return system_error("wait for what UCX brings");
  }
  return end;
}

// ---- Meeting ----

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
    return remote_error("an address of UCX came that is none");
  if (head.version != kUcxVersion) return remote_error("the other end uses UCX as another version of tutti does");
  if (endpoint_ != nullptr) return internal_error("two addresses for one end of UCX");
  theirs_ = head.token;
  // UCX wants it aligned.
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
  const UcxWords words;
  const ucs_status_t status = ucx().ep_create(engine_.worker(), &how, &endpoint_);
  if (status == UCS_OK) return {};
  endpoint_ = nullptr;
  return unsupported("UCX does not reach the other end: " + explain_ucx(status) +
                     "; see what UCX_TLS and UCX_NET_DEVICES leave it");
}

void UcxEnd::fail(const std::string& why) {
  if (error_.empty()) error_ = "UCX: " + why;
  ring();
}

// ---- What goes ----

Status UcxEnd::put(const MessageHead& head, const std::byte* data) {
  if (!error_.empty()) return remote_error(error_);
  const auto found = writing_.find(head.lane);
  TUTTI_ASSERT(found != writing_.end());
  Writing& lane = found->second;
  TUTTI_ASSERT(head.number - lane.left < kSlots);
  Sending& sending = lane.sending[head.number % kSlots];
  sending.message = {theirs_, head};
  ucp_request_param_t how = begun<ucp_send_nbx_callback_t>(
      [](void* request, ucs_status_t status, void* about) {
        auto& sent = *static_cast<Sending*>(about);
        ucx().request_free(request);
        sent.lane->end->over(sent, status);
      },
      &sending);
  use(how, lane);
  if (lane.on_device && head.bytes > 0) {  // No processor is to copy it.
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_AM_SEND_FLAG_RNDV;
  }
  ++busy_;
  ++count_put_;
  const UcxWords words;
  const ucs_status_ptr_t begun_send =
      ucx().am_send_nbx(endpoint_, kUcxMessage, &sending.message, sizeof sending.message, data, head.bytes, &how);
  if (begun_send == nullptr || UCS_PTR_IS_ERR(begun_send)) over(sending, UCS_PTR_STATUS(begun_send));
  return error_.empty() ? Status() : remote_error(error_);
}

// They may leave in another order than they came.
void UcxEnd::over(Sending& sending, ucs_status_t status) {
  --busy_;
  if (status != UCS_OK) return fail(explain_ucx(status));
  sending.over = true;
  unpassed_ = true;
  Writing& lane = *sending.lane;
  while (lane.sending[lane.over % kSlots].over) lane.sending[lane.over++ % kSlots].over = false;
  if (!std::exchange(lane.has_over, true)) over_.push_back(&lane);
  ring();
}

Result<bool> UcxEnd::credit(std::uint32_t number, std::uint64_t taken) {
  if (!error_.empty()) return remote_error(error_);
  const auto found = reading_.find(number);
  TUTTI_ASSERT(found != reading_.end());
  return say(found->second.credit, {.taken = taken, .lane = number, .kind = UcxWordKind::credit});
}

bool UcxEnd::say(Speech& speech, UcxWord word) {
  if (std::exchange(speech.busy, true)) return false;
  speech.end = this;
  speech.word = word;
  speech.word.token = theirs_;
  speech.word.arrived = count_arrived_;
  const auto said = [](void* request, ucs_status_t status, void* about) {
    auto& spoken = *static_cast<Speech*>(about);
    if (request != nullptr) ucx().request_free(request);
    --spoken.end->busy_;
    spoken.busy = false;
    spoken.end->unpassed_ = true;
    if (status != UCS_OK) spoken.end->fail(explain_ucx(status));
  };
  const ucp_request_param_t how = begun<ucp_send_nbx_callback_t>(said, &speech);
  ++busy_;
  const UcxWords words;
  const ucs_status_ptr_t sent =
      ucx().am_send_nbx(endpoint_, kUcxWord, &speech.word, sizeof speech.word, nullptr, 0, &how);
  if (sent == nullptr || UCS_PTR_IS_ERR(sent)) said(nullptr, UCS_PTR_STATUS(sent), &speech);
  return true;
}

// What UCX has sent may still be in a buffer of its own, which nobody empties once this thread has left. A flush
// returns when it is on its way.
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
  const UcxWords words;
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
  ring();
}

// ---- What comes ----

ucs_status_t UcxEnd::take_message(const MessageHead& head, const Data& data) {
  const auto found = reading_.find(head.lane);
  if (found == reading_.end()) {
    if (head.lane >= next_reading_) fail("a message came for a lane that there is not");
    ++count_arrived_;
    return UCS_OK;  // The lane has been forgotten: it is dropped.
  }
  Reading& lane = found->second;
  Arrival& arrival = lane.arrivals[head.number % kSlots];
  if (head.bytes != data.bytes || head.bytes > lane.view.slot_bytes) {
    fail("a message came that is longer than a slot, or than it says");
    return UCS_OK;
  }
  const bool in_turn = head.number - lane.next < kSlots && arrival.state == Arrival::State::none;
  if (!in_turn || head.number - load_acquire(&lane.view.credits->taken) >= kSlots) {
    fail("a message came twice, or for which there is no slot");
    return UCS_OK;
  }
  arrival.head = head;
  if (data.waits_there) return fetch(arrival, data);
  if (lane.on_device && data.bytes > 0) {
    fail("a message came that the other end was to keep until it is fetched");
    return UCS_OK;
  }
  if (data.bytes > 0) std::memcpy(slot_of(lane.view, head.number), data.at, data.bytes);
  ++busy_;
  come(arrival, UCS_OK);
  return UCS_OK;
}

ucs_status_t UcxEnd::fetch(Arrival& arrival, const Data& data) {
  ucp_request_param_t how = begun<ucp_am_recv_data_nbx_callback_t>(
      [](void* request, ucs_status_t status, std::size_t, void* about) {
        auto& fetched = *static_cast<Arrival*>(about);
        ucx().request_free(request);
        fetched.lane->end->come(fetched, status);
      },
      &arrival);
  use(how, *arrival.lane);
  arrival.state = Arrival::State::coming;
  ++busy_;
  std::byte* slot = slot_of(arrival.lane->view, arrival.head.number);
  const ucs_status_ptr_t begun_fetch = ucx().am_recv_data_nbx(engine_.worker(), data.at, slot, data.bytes, &how);
  if (begun_fetch == nullptr || UCS_PTR_IS_ERR(begun_fetch)) come(arrival, UCS_PTR_STATUS(begun_fetch));
  return UCS_INPROGRESS;  // UCX keeps what it needs of it.
}

void UcxEnd::come(Arrival& arrival, ucs_status_t status) {
  --busy_;
  if (status != UCS_OK) return fail(explain_ucx(status));
  ++count_arrived_;
  arrival.state = Arrival::State::there;
  if (!std::exchange(arrival.lane->has_news, true)) arrived_.push_back(arrival.lane);
  ring();
}

void UcxEnd::take_word(const UcxWord& word) {
  count_heard_ = std::max(count_heard_, std::min(word.arrived, count_put_));
  switch (word.kind) {
    case UcxWordKind::question: engine_.owe_answer(*this); return;
    case UcxWordKind::answer: asked_ = false; return;
    case UcxWordKind::farewell: alone_ = true; return;
    case UcxWordKind::credit: break;
    default: return fail("a word came that means nothing");
  }
  const auto found = writing_.find(word.lane);
  if (found == writing_.end()) {
    if (word.lane >= next_writing_) fail("credits came for a lane that there is not");
    return;
  }
  Writing& lane = found->second;
  lane.credited = std::max(lane.credited, word.taken);
  if (!std::exchange(lane.has_credit, true)) credited_.push_back(&lane);
  ring();
}

Status UcxEnd::tell(CarrierEvents& events) {
  armed_ = false;
  if (std::exchange(rung_, false)) {
    std::uint64_t rings = 0;
    (void)!::read(bell_.get(), &rings, sizeof rings);
  }
  for (Reading* lane : arrived_) {
    lane->has_news = false;
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

// ---- Sleeping ----

bool UcxEnd::arm() {
  const bool idle =
      arrived_.empty() && left_.empty() && credited_.empty() && error_.empty() && (passing_ || !unpassed_);
  armed_ = idle && engine_.arm();
  return armed_;
}

// Another thread has taken in what this end's sleeps for.
void UcxEnd::ring() {
  if (!std::exchange(armed_, false)) return;
  const std::uint64_t once = 1;
  rung_ = ::write(bell_.get(), &once, sizeof once) == sizeof once;
}

// ---- The end ----

bool UcxEnd::answer() { return !error_.empty() || endpoint_ == nullptr || say(answer_, {.kind = UcxWordKind::answer}); }

bool UcxEnd::may_part() {
  if (endpoint_ == nullptr || !error_.empty()) return true;
  pass_on();
  if (!passed_on()) return false;
  if (parts_) return true;
  if (count_heard_ == count_put_ || alone_) {
    parts_ = say(farewell_, {.kind = UcxWordKind::farewell});
  } else if (!asked_) {
    asked_ = say(question_, {.kind = UcxWordKind::question});
  }
  return false;
}

// Whatever is under way ends.
void UcxEnd::close() {
  if (endpoint_ == nullptr) return;
  ucp_request_param_t how = {};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const UcxWords words;
  closing_ = ucx().ep_close_nbx(endpoint_, &how);
  if (UCS_PTR_IS_PTR(closing_)) return;
  closing_ = nullptr;
  endpoint_ = nullptr;
}

bool UcxEnd::closed() {
  if (closing_ != nullptr && ucx().request_check_status(closing_) != UCS_INPROGRESS) {
    ucx().request_free(std::exchange(closing_, nullptr));
    endpoint_ = nullptr;
  }
  return endpoint_ == nullptr && busy_ == 0 && !passing_;
}

}  // namespace tutti
