#include "src/messages/protocol.h"

#include <algorithm>
#include <cstring>

#include "src/messages/errors.h"

namespace tutti {
namespace {

bool agree(const MessageFrame& frame, const MessageCall& receive) {
  return frame.count == receive.count && frame.type == static_cast<std::uint32_t>(receive.type);
}

MessageInfo info_of(Rank source, const MessageFrame& frame) { return {source, frame.tag, frame.count}; }

MessageFrame answer_to(const MessageFrame& frame, MessageFrameKind kind) {
  MessageFrame answer = frame;
  answer.kind = kind;
  return answer;
}

void copy(const MessageCall& receive, const std::byte* data) {
  if (receive.bytes() > 0) std::memcpy(receive.data, data, receive.bytes());
}

}  // namespace

// ---- Requests ----

RequestPointer MessageProtocol::begin(const MessageCall& call) {
  ++incomplete_;
  return std::make_shared<MessageRequest>(call);
}

void MessageProtocol::end(const RequestPointer& request, Status status, const MessageInfo& info) {
  --incomplete_;
  ended_.push_back({request, std::move(status), info});
}

void MessageProtocol::end_early(const RequestPointer& request, const Status& reason) {
  end(request, leaving_ ? incomplete_at_end(request->call(), membership_.name) : reason.copy());
}

bool MessageProtocol::all_have_left() {
  if (membership_.ranks == 1) return false;
  for (Rank rank = 0; rank < membership_.ranks; ++rank) {
    if (rank != membership_.rank && !links_.ended(rank, LinkSide::in)) return false;
  }
  return true;
}

// Returns an error if the peer of a call, or each possible one, has left.
Status MessageProtocol::check_present(const MessageCall& call) {
  if (call.peer == membership_.rank) return {};
  const LinkSide side = call.direction == MessageDirection::send ? LinkSide::out : LinkSide::in;
  const bool has_left = call.peer == kAnyRank ? all_have_left() : links_.ended(call.peer, side);
  return has_left ? peer_has_left(call.peer, membership_.name) : Status();
}

Result<RequestPointer> MessageProtocol::send(const MessageCall& call) {
  TUTTI_CHECK_OK(check_present(call));
  RequestPointer request = begin(call);
  MessageFrame frame;
  frame.type = static_cast<std::uint32_t>(call.type);
  frame.tag = call.tag;
  frame.count = call.count;
  frame.number = next_number_++;
  Peer& target = peers_[call.peer];
  const std::uint64_t charge = charge_of(call.bytes());
  const bool eager = call.bytes() <= kMaxEagerBytes && target.charged + charge <= kEagerWindow;
  frame.kind = eager ? MessageFrameKind::eager : MessageFrameKind::announced;
  if (call.peer == membership_.rank) {
    send_to_self(request, frame);
    return request;
  }
  if (eager) {
    target.charged += charge;
    out(call.peer).put(frame, request);
  } else {
    target.announced[frame.number] = request;
    out(call.peer).put(frame);
  }
  links_.push(call.peer);
  links_.open(call.peer);
  return request;
}

Result<RequestPointer> MessageProtocol::receive(const MessageCall& call) {
  const ArrivalPointer arrival = matching_.take_arrival(call.peer, call.tag);
  if (arrival == nullptr) TUTTI_CHECK_OK(check_present(call));
  RequestPointer request = begin(call);
  if (arrival == nullptr) {
    matching_.add(request);
  } else {
    accept(arrival, request);
    if (arrival->source != membership_.rank) links_.push(arrival->source);
  }
  return request;
}

Result<std::optional<MessageInfo>> MessageProtocol::probe(Rank source, std::uint64_t tag) {
  const MessageArrival* arrival = matching_.find_arrival(source, tag);
  if (arrival != nullptr) return std::optional(info_of(arrival->source, arrival->frame));
  TUTTI_CHECK_OK(check_present({MessageDirection::receive, source, tag}));
  return std::optional<MessageInfo>();
}

bool MessageProtocol::cancel(const MessageRequest& request) {
  const bool receives = request.call().direction == MessageDirection::receive;
  const RequestPointer cancelled = receives ? matching_.take_receive(request) : withdraw(request);
  if (cancelled != nullptr) end(cancelled, aborted_error(describe(request.call()) + " was cancelled"));
  return cancelled != nullptr;
}

// Removes a send whose data have not begun to move; null if it is not present. The receiver may know the message, and
// may wait for it.
RequestPointer MessageProtocol::withdraw(const MessageRequest& request) {
  const Rank rank = request.call().peer;
  Peer& target = peers_[rank];
  const auto announced = std::find_if(target.announced.begin(), target.announced.end(),
                                      [&](const auto& each) { return each.second.get() == &request; });
  if (announced != target.announced.end()) {
    RequestPointer found = std::move(announced->second);
    MessageFrame frame;
    frame.kind = MessageFrameKind::withdrawal;
    frame.tag = request.call().tag;
    frame.number = announced->first;
    target.announced.erase(announced);
    if (rank == membership_.rank) {
      matching_.remove(rank, frame.tag, frame.number);
    } else if (!out(rank).withdraw_announcement(frame.number)) {
      out(rank).put(frame);
      links_.push(rank);
    }
    return found;
  }
  const auto outgoing = out(rank).withdraw(request);
  if (!outgoing) return nullptr;
  if (outgoing->frame.kind == MessageFrameKind::eager) {
    target.charged -= charge_of(request.call().bytes());
  } else {
    out(rank).put(answer_to(outgoing->frame, MessageFrameKind::withdrawal));
    links_.push(rank);
  }
  return outgoing->request;
}

// ---- Ends ----

void MessageProtocol::leave() {
  leaving_ = true;
  for (const RequestPointer& receive : matching_.clear())
    end(receive, incomplete_at_end(receive->call(), membership_.name));
  for (auto& [rank, other] : peers_) {
    if (rank != membership_.rank) {
      for (const RequestPointer& request : out(rank).take_unbegun())
        end(request, incomplete_at_end(request->call(), membership_.name));
    }
    for (const auto& [number, request] : std::exchange(other.announced, {}))
      end(request, incomplete_at_end(request->call(), membership_.name));
  }
}

// Removes and returns the receives whose message is announced or arriving.
std::vector<RequestPointer> MessageProtocol::take_incoming(Peer& source) {
  std::vector<RequestPointer> taken;
  for (const auto& [number, request] : std::exchange(source.awaited, {})) taken.push_back(request);
  if (source.direct) taken.push_back(std::exchange(source.direct, nullptr));
  if (source.arriving && source.arriving->receiver) taken.push_back(source.arriving->receiver);
  source.arriving = nullptr;
  return taken;
}

void MessageProtocol::end_all(const Status& reason) {
  std::vector<RequestPointer> requests = matching_.clear();
  for (auto& [rank, other] : peers_) {
    if (rank != membership_.rank) {
      for (RequestPointer& request : out(rank).take_unsent()) requests.push_back(std::move(request));
    }
    for (const auto& [number, request] : std::exchange(other.announced, {})) requests.push_back(request);
    for (RequestPointer& request : take_incoming(other)) requests.push_back(std::move(request));
  }
  for (const RequestPointer& request : requests) end_early(request, reason);
}

// Ends the requests that name a rank which has left, except receives whose message has arrived.
void MessageProtocol::end_side(Rank rank, LinkSide side) {
  const Status reason = peer_has_left(rank, membership_.name);
  Peer& other = peers_[rank];
  std::vector<RequestPointer> requests;
  if (side == LinkSide::out) {
    requests = out(rank).take_unsent();
    for (const auto& [number, request] : std::exchange(other.announced, {})) requests.push_back(request);
  } else {
    requests = matching_.take_receives_from(rank);
    for (RequestPointer& request : take_incoming(other)) requests.push_back(std::move(request));
  }
  for (const RequestPointer& request : requests) end_early(request, reason);
}

void MessageProtocol::end_receives_from_any() {
  if (!receives_from_any() || !all_have_left()) return;
  for (const RequestPointer& receive : matching_.take_receives_from(kAnyRank))
    end_early(receive, peer_has_left(kAnyRank, membership_.name));
}

// ---- Messages to self ----

void MessageProtocol::send_to_self(const RequestPointer& request, const MessageFrame& frame) {
  const MessageCall& call = request->call();
  auto arrival = std::make_shared<MessageArrival>();
  arrival->source = membership_.rank;
  arrival->frame = frame;
  arrival->sender = request;
  Peer& self = peers_[membership_.rank];
  self.announced[frame.number] = request;
  if (const RequestPointer receive = matching_.take_receive(membership_.rank, frame.tag))
    return accept(arrival, receive);
  matching_.add(arrival);
  if (frame.kind != MessageFrameKind::eager) return;
  arrival->data.assign(call.data, call.data + call.bytes());
  arrival->whole = true;
  arrival->sender = nullptr;
  self.announced.erase(frame.number);
  self.charged += charge_of(call.bytes());
  end(request, {}, info_of(call.peer, frame));
}

// ---- Receiver ----

// Takes a message for a receive. The caller pushes the link.
void MessageProtocol::accept(const ArrivalPointer& arrival, const RequestPointer& receive) {
  const Rank rank = arrival->source;
  const MessageCall& call = receive->call();
  const MessageFrame& frame = arrival->frame;
  if (!agree(frame, call)) return refuse(*arrival, receive);
  Peer& source = peers_[rank];
  if (arrival->sender != nullptr) {
    copy(call, arrival->sender->call().data);
    source.announced.erase(frame.number);
    end(arrival->sender, {}, info_of(rank, frame));
    return end(receive, {}, info_of(rank, frame));
  }
  if (frame.kind == MessageFrameKind::announced) {
    if (links_.ended(rank, LinkSide::in)) return end(receive, peer_has_left(rank, membership_.name));
    source.awaited[frame.number] = receive;
    return in(rank).put(answer_to(frame, MessageFrameKind::request));
  }
  if (!arrival->whole) {
    if (source.arriving != arrival) return end(receive, peer_has_left(rank, membership_.name));
    arrival->receiver = receive;
    return;
  }
  copy(call, arrival->data.data());
  credit(rank, message_bytes(frame));
  end(receive, {}, info_of(rank, frame));
}

// Drops a message because the receive that matches it has another count or type.
void MessageProtocol::refuse(const MessageArrival& arrival, const RequestPointer& receive) {
  const MessageFrame& frame = arrival.frame;
  MessageCall received = receive->call();
  received.peer = arrival.source;
  const MessageCall sent = {MessageDirection::send, membership_.rank, frame.tag, frame.count,
                            static_cast<DataType>(frame.type)};
  end(receive, calls_differ(received, sent, membership_.name), info_of(arrival.source, frame));
  if (arrival.sender != nullptr) {
    peers_[arrival.source].announced.erase(frame.number);
    end(arrival.sender, calls_differ(received, sent, membership_.name));
  } else if (frame.kind == MessageFrameKind::announced) {
    MessageFrame refusal = answer_to(frame, MessageFrameKind::refusal);
    refusal.count = received.count;
    refusal.type = static_cast<std::uint32_t>(received.type);
    in(arrival.source).put(refusal);
  } else {
    credit(arrival.source, message_bytes(frame));
  }
}

// Small eager messages are credited together.
void MessageProtocol::credit(Rank rank, std::uint64_t bytes) {
  Peer& source = peers_[rank];
  source.owed += charge_of(bytes);
  if (rank == membership_.rank) {
    source.charged -= std::exchange(source.owed, 0);
    return;
  }
  if (source.owed < kEagerWindow / 4) return;
  MessageFrame frame;
  frame.kind = MessageFrameKind::credit;
  frame.count = std::exchange(source.owed, 0);
  in(rank).put(frame);
}

std::byte* MessageProtocol::begin_eager(Rank rank, const MessageFrame& frame) {
  Peer& source = peers_[rank];
  RequestPointer receive = matching_.take_receive(rank, frame.tag);
  if (receive != nullptr && agree(frame, receive->call())) {
    source.direct = std::move(receive);
    return source.direct->call().data;
  }
  auto arrival = std::make_shared<MessageArrival>();
  arrival->source = rank;
  arrival->frame = frame;
  arrival->data.resize(message_bytes(frame));
  source.arriving = arrival;
  if (receive != nullptr) {
    refuse(*arrival, receive);
  } else {
    matching_.add(arrival);
  }
  return arrival->data.data();
}

void MessageProtocol::end_eager(Rank rank, const MessageFrame& frame) {
  Peer& source = peers_[rank];
  if (source.direct != nullptr) {
    credit(rank, message_bytes(frame));
    return end(std::exchange(source.direct, nullptr), {}, info_of(rank, frame));
  }
  const ArrivalPointer arrival = std::exchange(source.arriving, nullptr);
  arrival->whole = true;
  if (arrival->receiver == nullptr) return;
  copy(arrival->receiver->call(), arrival->data.data());
  credit(rank, message_bytes(frame));
  end(arrival->receiver, {}, info_of(rank, frame));
}

// ---- Frames ----

Result<std::byte*> MessageProtocol::begin_frame(Rank rank, const MessageFrame& frame) {
  if (frame.kind == MessageFrameKind::eager) return begin_eager(rank, frame);
  if (frame.kind != MessageFrameKind::payload) return nullptr;
  const Peer& other = peers_[rank];
  const auto found = other.awaited.find(frame.number);
  if (found == other.awaited.end() || !agree(frame, found->second->call()))
    return internal_error("rank " + std::to_string(rank) + " sent data of a message that was not requested");
  return found->second->call().data;
}

Status MessageProtocol::end_frame(Rank rank, const MessageFrame& frame) {
  Peer& other = peers_[rank];
  switch (frame.kind) {
    case MessageFrameKind::eager: end_eager(rank, frame); break;
    case MessageFrameKind::announced: end_announcement(rank, frame); break;
    case MessageFrameKind::payload:
      end(other.awaited[frame.number], {}, info_of(rank, frame));
      other.awaited.erase(frame.number);
      break;
    case MessageFrameKind::withdrawal:
      matching_.remove(rank, frame.tag, frame.number);
      if (const auto found = other.awaited.find(frame.number); found != other.awaited.end()) {
        end(found->second, remote_error("rank " + std::to_string(rank) + " cancelled the message with tag " +
                                        std::to_string(frame.tag) + membership_.name));
        other.awaited.erase(found);
      }
      break;
    case MessageFrameKind::request:
    case MessageFrameKind::refusal: end_announced(rank, frame); break;
    case MessageFrameKind::credit: other.charged -= frame.count; break;
    case MessageFrameKind::welcome:
    case MessageFrameKind::goodbye: break;  // See MessageLinks.
  }
  return {};
}

void MessageProtocol::end_announcement(Rank rank, const MessageFrame& frame) {
  auto arrival = std::make_shared<MessageArrival>();
  arrival->source = rank;
  arrival->frame = frame;
  if (const RequestPointer receive = matching_.take_receive(rank, frame.tag)) return accept(arrival, receive);
  matching_.add(arrival);
}

// Handles the receiver's answer to an announced message. A message that was withdrawn meanwhile is not present.
void MessageProtocol::end_announced(Rank rank, const MessageFrame& frame) {
  Peer& target = peers_[rank];
  const auto found = target.announced.find(frame.number);
  if (found == target.announced.end()) return;
  const RequestPointer request = std::move(found->second);
  target.announced.erase(found);
  if (frame.kind == MessageFrameKind::request)
    return out(rank).put(answer_to(frame, MessageFrameKind::payload), request);
  const MessageCall received = {MessageDirection::receive, membership_.rank, frame.tag, frame.count,
                                static_cast<DataType>(frame.type)};
  end(request, calls_differ(received, request->call(), membership_.name));
}

void MessageProtocol::end_sent(const RequestPointer& request) {
  const MessageCall& call = request->call();
  end(request, {}, {call.peer, call.tag, call.count});
}

}  // namespace tutti
