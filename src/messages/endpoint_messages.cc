// Protocol of messages: what the endpoint does with frames, and how receives take messages.
#include <cstring>
#include <utility>

#include "src/messages/endpoint.h"

namespace tutti {
namespace {

bool agree(const MessageFrame& frame, const MessageCall& receive) {
  return frame.count == receive.count && frame.type == static_cast<std::uint32_t>(receive.type);
}

MessageInfo info_of(Rank source, const MessageFrame& frame) { return {source, frame.tag, frame.count}; }

void copy(const MessageCall& receive, const std::byte* data) {
  if (receive.bytes() > 0) std::memcpy(receive.data, data, receive.bytes());
}

}  // namespace

// Returns the error of a receive and a send that match but differ. `receiver` and `sender` are their ranks.
Status MessageEndpoint::differ(const MessageCall& receive, const MessageCall& send) const {
  return invalid_usage("rank " + std::to_string(send.peer) + " called " + describe(receive) + ", but rank " +
                       std::to_string(receive.peer) + " called " + describe(send) + membership_.name +
                       ": counts and types must be equal");
}

// ---- Receiver ----

// Takes a message for a receive. The caller pushes the link.
void MessageEndpoint::accept(const ArrivalPointer& arrival, const RequestPointer& receive) {
  const MessageCall& call = receive->call();
  const MessageFrame& frame = arrival->frame;
  const MessageInfo info = info_of(arrival->source, frame);
  if (!agree(frame, call)) return refuse(*arrival, receive);
  Peer& source = peer(arrival->source);
  if (arrival->sender != nullptr) {
    copy(call, arrival->sender->call().data);
    source.announced.erase(frame.number);
    end(arrival->sender, {}, info);
    return end(receive, {}, info);
  }
  if (frame.kind == MessageFrameKind::announced) {
    if (source.gone[kIn]) return end(receive, left(arrival->source));
    source.awaited[frame.number] = receive;
    MessageFrame request = frame;
    request.kind = MessageFrameKind::request;
    return source.links[kIn].put(request);
  }
  if (!arrival->whole) {
    if (source.arriving != arrival) return end(receive, left(arrival->source));
    arrival->receiver = receive;
    return;
  }
  copy(call, arrival->data.data());
  credit(source, message_bytes(frame));
  end(receive, {}, info);
}

// Drops a message because the receive that matches it has another count or type.
void MessageEndpoint::refuse(const MessageArrival& arrival, const RequestPointer& receive) {
  const MessageFrame& frame = arrival.frame;
  MessageCall received = receive->call();
  received.peer = arrival.source;
  const MessageCall sent = {MessageDirection::send, membership_.rank, frame.tag, frame.count,
                            static_cast<DataType>(frame.type)};
  Peer& source = peer(arrival.source);
  end(receive, differ(received, sent), info_of(arrival.source, frame));
  if (arrival.sender != nullptr) {
    source.announced.erase(frame.number);
    end(arrival.sender, differ(received, sent));
  } else if (frame.kind == MessageFrameKind::announced) {
    MessageFrame refusal = frame;
    refusal.kind = MessageFrameKind::refusal;
    refusal.count = received.count;
    refusal.type = static_cast<std::uint32_t>(received.type);
    source.links[kIn].put(refusal);
  } else {
    credit(source, message_bytes(frame));
  }
}

// Small eager messages are credited together.
void MessageEndpoint::credit(Peer& source, std::uint64_t bytes) {
  source.owed += charge_of(bytes);
  if (source.links[kIn].peer() == membership_.rank) {
    source.charged -= std::exchange(source.owed, 0);
    return;
  }
  if (source.owed < kEagerWindow / 4) return;
  MessageFrame frame;
  frame.kind = MessageFrameKind::credit;
  frame.count = std::exchange(source.owed, 0);
  source.links[kIn].put(frame);
}

std::byte* MessageEndpoint::begin_eager(Peer& source, const MessageFrame& frame) {
  const Rank rank = source.links[kIn].peer();
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

void MessageEndpoint::end_eager(Peer& source, const MessageFrame& frame) {
  if (source.direct != nullptr) {
    credit(source, message_bytes(frame));
    return end(std::exchange(source.direct, nullptr), {}, info_of(source.links[kIn].peer(), frame));
  }
  const ArrivalPointer arrival = std::exchange(source.arriving, nullptr);
  arrival->whole = true;
  if (arrival->receiver == nullptr) return;
  copy(arrival->receiver->call(), arrival->data.data());
  credit(source, message_bytes(frame));
  end(arrival->receiver, {}, info_of(arrival->source, frame));
}

void MessageEndpoint::send_to_self(const RequestPointer& request, MessageFrame frame) {
  const MessageCall& call = request->call();
  auto arrival = std::make_shared<MessageArrival>();
  arrival->source = membership_.rank;
  arrival->frame = frame;
  arrival->sender = request;
  Peer& self = peer(membership_.rank);
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

// ---- Frames ----

Result<std::byte*> MessageEndpoint::begin_frame(Rank rank, const MessageFrame& frame) {
  Peer& other = peer(rank);
  if (frame.kind == MessageFrameKind::eager) return begin_eager(other, frame);
  if (frame.kind != MessageFrameKind::payload) return nullptr;
  const auto found = other.awaited.find(frame.number);
  if (found == other.awaited.end() || !agree(frame, found->second->call()))
    return internal_error("rank " + std::to_string(rank) + " sent data of a message that was not requested");
  return found->second->call().data;
}

Status MessageEndpoint::end_frame(Rank rank, const MessageFrame& frame) {
  Peer& other = peer(rank);
  switch (frame.kind) {
    case MessageFrameKind::eager: end_eager(other, frame); break;
    case MessageFrameKind::announced: {
      auto arrival = std::make_shared<MessageArrival>();
      arrival->source = rank;
      arrival->frame = frame;
      if (const RequestPointer receive = matching_.take_receive(rank, frame.tag)) {
        accept(arrival, receive);
      } else {
        matching_.add(arrival);
      }
      break;
    }
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
    case MessageFrameKind::refusal: end_announced(other, frame); break;
    case MessageFrameKind::credit: other.charged -= frame.count; break;
    case MessageFrameKind::goodbye: break;  // See serve_link().
  }
  return {};
}

// Answer of the receiver to an announced message. A message that was withdrawn meanwhile is not present.
void MessageEndpoint::end_announced(Peer& target, const MessageFrame& frame) {
  const auto found = target.announced.find(frame.number);
  if (found == target.announced.end()) return;
  const RequestPointer request = std::move(found->second);
  target.announced.erase(found);
  if (frame.kind == MessageFrameKind::request) {
    MessageFrame payload = frame;
    payload.kind = MessageFrameKind::payload;
    return target.links[kOut].put(payload, request);
  }
  const MessageCall received = {MessageDirection::receive, membership_.rank, frame.tag, frame.count,
                                static_cast<DataType>(frame.type)};
  end(request, differ(received, request->call()));
}

}  // namespace tutti
