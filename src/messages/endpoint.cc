#include "src/messages/endpoint.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "src/base/caught.h"
#include "src/messages/service.h"

namespace tutti {
namespace {

constexpr std::int64_t kFinishMs = 3000;

std::string rank_name(Rank rank) { return "rank " + std::to_string(rank); }

}  // namespace

Status refuse_message(const std::string& name) {
  return invalid_usage("the communicator" + name + " has ended: start messages before you finalize or destroy it");
}

MessageEndpoint::Locked::~Locked() {
  std::vector<EndedRequest> ended = std::exchange(endpoint_.ended_, {});
  lock_.unlock();
  std::vector<RequestPointer> callbacks;
  for (EndedRequest& each : ended) {
    if (each.request->end(std::move(each.status), each.info)) callbacks.push_back(std::move(each.request));
  }
  if (callbacks.empty()) return;
  lock_.lock();
  const bool served = endpoint_.closed_.ok();  // Else the service may not exist.
  if (served) {
    endpoint_.callbacks_.insert(endpoint_.callbacks_.end(), callbacks.begin(), callbacks.end());
    endpoint_.service_.wake();
  }
  lock_.unlock();
  if (served) return;
  for (const RequestPointer& request : callbacks) request->run_callback();
}

MessageEndpoint::MessageEndpoint(MessageMembership membership, std::vector<Socket> listeners, MessageService& service)
    : membership_(std::move(membership)),
      service_(service),
      epoll_(adopt_socket(::epoll_create1(EPOLL_CLOEXEC))),
      acceptor_(membership_.rank, membership_.ranks) {
  if (!epoll_) {
    trouble_ = system_error("create an epoll instance for tagged messages");
    check_at_ = Deadline::after_ms(1);
  }
  for (Socket& listener : listeners) acceptor_.listen(std::move(listener), Role::message, membership_.credentials);
}

MessageEndpoint::~MessageEndpoint() = default;

// ---- Requests ----

Status MessageEndpoint::check_open(const MessageCall& call) {
  if (!closed_.ok()) return closed_.copy();
  if (leaving_) return refuse_message(membership_.name);
  if (call.peer == kAnyRank || call.peer == membership_.rank) return {};
  return peer(call.peer).gone[call.direction == MessageDirection::send ? kOut : kIn] ? left(call.peer) : Status();
}

// Checks of the communicator begin with the first incomplete request or unsuccessful probe.
RequestPointer MessageEndpoint::begin(const MessageCall& call) {
  auto request = std::make_shared<MessageRequest>(call);
  ++incomplete_;
  begin_checks();
  return request;
}

void MessageEndpoint::begin_checks() {
  if (check_at_.at_ns != Deadline{}.at_ns) return;
  check_at_ = Deadline::after_ms(kMessageCheckMs);
  service_.wake();
}

void MessageEndpoint::end(const RequestPointer& request, Status status, const MessageInfo& info) {
  --incomplete_;
  ended_.push_back({request, std::move(status), info});
}

Result<RequestPointer> MessageEndpoint::send(const MessageCall& call) {
  const Locked lock(*this);
  TUTTI_CHECK_OK(check_open(call));
  RequestPointer request = begin(call);
  MessageFrame frame;
  frame.type = static_cast<std::uint32_t>(call.type);
  frame.tag = call.tag;
  frame.count = call.count;
  frame.number = next_number_++;
  Peer& target = peer(call.peer);
  const std::uint64_t charge = charge_of(call.bytes());
  const bool eager = call.bytes() <= kMaxEagerBytes && target.charged + charge <= kEagerWindow;
  frame.kind = eager ? MessageFrameKind::eager : MessageFrameKind::announced;
  if (call.peer == membership_.rank) {
    send_to_self(request, frame);
    return request;
  }
  if (eager) {
    target.charged += charge;
    target.links[kOut].put(frame, request);
  } else {
    target.announced[frame.number] = request;
    target.links[kOut].put(frame);
  }
  push(target);
  open_link(target);
  return request;
}

Result<RequestPointer> MessageEndpoint::receive(const MessageCall& call) {
  const Locked lock(*this);
  const ArrivalPointer arrival = closed_.ok() && !leaving_ ? matching_.take_arrival(call.peer, call.tag) : nullptr;
  if (arrival == nullptr) TUTTI_CHECK_OK(check_open(call));
  RequestPointer request = begin(call);
  if (arrival == nullptr) {
    matching_.add(request);
  } else {
    accept(arrival, request);
    if (arrival->source != membership_.rank) push(peer(arrival->source));
  }
  return request;
}

Result<std::optional<MessageInfo>> MessageEndpoint::probe(Rank source, std::uint64_t tag) {
  const Locked lock(*this);
  if (!closed_.ok()) return closed_.copy();
  const MessageArrival* arrival = matching_.find_arrival(source, tag);
  if (arrival != nullptr) return std::optional(MessageInfo{arrival->source, tag, arrival->frame.count});
  TUTTI_CHECK_OK(check_open({MessageDirection::receive, source, tag}));
  probed_ = true;
  begin_checks();
  return std::optional<MessageInfo>();
}

bool MessageEndpoint::cancel(const MessageRequest& request) {
  const Locked lock(*this);
  RequestPointer cancelled;
  if (request.call().direction == MessageDirection::receive) {
    cancelled = matching_.take_receive(request);
  } else {
    cancelled = withdraw(request);
  }
  if (cancelled != nullptr) end(cancelled, aborted_error(describe(request.call()) + " was cancelled"));
  return cancelled != nullptr || request.complete();
}

// Removes a send whose data have not begun to move; null if it is not present. The receiver may know the message, and
// may wait for it.
RequestPointer MessageEndpoint::withdraw(const MessageRequest& request) {
  Peer& target = peer(request.call().peer);
  MessageLink& link = target.links[kOut];
  for (auto each = target.announced.begin(); each != target.announced.end(); ++each) {
    if (each->second.get() != &request) continue;
    RequestPointer found = std::move(each->second);
    MessageFrame frame;
    frame.kind = MessageFrameKind::withdrawal;
    frame.tag = request.call().tag;
    frame.number = each->first;
    target.announced.erase(each);
    if (link.peer() == membership_.rank) {
      matching_.remove(link.peer(), frame.tag, frame.number);
    } else {
      link.put(frame);
      push(target);
    }
    return found;
  }
  const auto outgoing = link.withdraw(request);
  if (!outgoing) return nullptr;
  if (outgoing->frame.kind == MessageFrameKind::eager) {
    target.charged -= charge_of(request.call().bytes());
  } else {
    MessageFrame frame = outgoing->frame;
    frame.kind = MessageFrameKind::withdrawal;
    link.put(frame);
    push(target);
  }
  return outgoing->request;
}

// ---- Ending ----

Status MessageEndpoint::left(Rank rank) const {
  return remote_error(rank_name(rank) + " has left the communicator" + membership_.name);
}

Status MessageEndpoint::lost(const MessageCall& call) const {
  return invalid_usage(describe(call) + " was not complete when the communicator" + membership_.name +
                       " ended: wait for requests before you finalize or destroy it");
}

void MessageEndpoint::end_early(const RequestPointer& request, const Status& reason) {
  end(request, leaving_ ? lost(request->call()) : reason.copy());
}

// Ends the sends to a rank that has left.
void MessageEndpoint::end_sends(Peer& target) {
  MessageLink& link = target.links[kOut];
  const Status reason = left(link.peer());
  target.gone[kOut] = true;
  if (!link.connected() || link.in_frame()) end_link(target, kOut);  // A goodbye would be read as a part of the frame.
  for (const RequestPointer& request : link.take_unsent()) end_early(request, reason);
  for (const auto& [number, request] : std::exchange(target.announced, {})) end_early(request, reason);
}

// Ends the receives from a rank that has left, except those whose message has arrived.
void MessageEndpoint::end_receives(Peer& source) {
  const Rank rank = source.links[kIn].peer();
  const Status reason = left(rank);
  source.gone[kIn] = true;
  for (const RequestPointer& request : matching_.take_receives_from(rank)) end_early(request, reason);
  for (const auto& [number, request] : std::exchange(source.awaited, {})) end_early(request, reason);
  if (source.direct) end_early(std::exchange(source.direct, nullptr), reason);
  if (source.arriving && source.arriving->receiver) end_early(source.arriving->receiver, reason);
  source.arriving = nullptr;
}

void MessageEndpoint::end_all(const Status& status) {
  if (!closed_.ok()) return;
  closed_ = status.copy();
  std::vector<RequestPointer> requests = matching_.clear();
  for (auto& [rank, other] : peers_) {
    for (RequestPointer& request : other.links[kOut].take_unsent()) requests.push_back(std::move(request));
    for (const auto& [number, request] : std::exchange(other.announced, {})) requests.push_back(request);
    for (const auto& [number, request] : std::exchange(other.awaited, {})) requests.push_back(request);
    if (other.direct) requests.push_back(std::exchange(other.direct, nullptr));
    if (other.arriving && other.arriving->receiver) requests.push_back(other.arriving->receiver);
    other.arriving = nullptr;
    end_link(other, kOut);
    end_link(other, kIn);
  }
  for (const RequestPointer& request : requests) end_early(request, status);
}

void MessageEndpoint::finish() {
  {
    const Locked lock(*this);
    leaving_ = true;
    for (const RequestPointer& receive : matching_.clear()) end(receive, lost(receive->call()));
    for (auto& [rank, other] : peers_) {
      for (const RequestPointer& request : other.links[kOut].take_unbegun()) end(request, lost(request->call()));
      for (const auto& [number, request] : std::exchange(other.announced, {})) end(request, lost(request->call()));
      MessageFrame goodbye;
      goodbye.kind = MessageFrameKind::goodbye;
      for (MessageLink& link : other.links) link.put(goodbye);
      push(other);
    }
  }
  const Deadline deadline = Deadline::after_ms(kFinishMs);
  while (!deadline.passed() && !drained()) ::poll(nullptr, 0, 1);
}

bool MessageEndpoint::drained() {
  const Locked lock(*this);
  if (!closed_.ok()) return true;
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    const auto& links = entry.second.links;
    return links[kOut].drained() && links[kIn].drained();
  });
}

void MessageEndpoint::close() {
  service_.remove(*this);
  {
    const Locked lock(*this);
    end_all(aborted_error("the communicator" + membership_.name + " has ended"));
    acceptor_.stop_listening();
  }
  run_callbacks();
}

}  // namespace tutti
