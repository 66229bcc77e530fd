// Protocol of messages with tags: which frames a send or receive causes, and which requests a frame completes.
//
// Small messages are eager: they are sent at once and wait in the receiver's queue. Large messages are announced, and
// sent when a receive has matched them. The receiver's queue therefore has a bounded size for each sender.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "src/messages/links.h"
#include "src/messages/matching.h"
#include "src/messages/membership.h"

namespace tutti {

// A request that has ended, but is not marked as complete yet.
struct EndedRequest {
  RequestPointer request;
  Status status;
  MessageInfo info;
};

// Not thread-safe. No function blocks.
class MessageProtocol final : public MessageLinkUser {
 public:
  // Queues frames in `links`, and pushes them.
  MessageProtocol(const MessageMembership& membership, MessageLinks& links) : membership_(membership), links_(links) {}

  // See MessageEndpoint.
  Result<RequestPointer> send(const MessageCall& call);
  Result<RequestPointer> receive(const MessageCall& call);
  Result<std::optional<MessageInfo>> probe(Rank source, std::uint64_t tag);
  bool cancel(const MessageRequest& request);  // Returns whether it has ended the request.

  // This rank leaves the communicator: ends requests, except those whose message is moving.
  void leave();
  void end_all(const Status& reason);
  // Ends receives from any rank if all other ranks have left. Must be called when ranks have left.
  void end_receives_from_any();
  bool receives_from_any() const { return matching_.has_receives_from(kAnyRank); }

  std::uint64_t incomplete() const { return incomplete_; }  // Number of requests that have not ended.
  std::vector<EndedRequest> take_ended() { return std::exchange(ended_, {}); }

 private:
  // State of the messages to and from one rank.
  struct Peer {
    std::uint64_t charged = 0;                          // Charge of eager messages that the peer has not credited.
    std::uint64_t owed = 0;                             // Charge of eager messages that this rank has not credited.
    std::map<std::uint64_t, RequestPointer> announced;  // Sends that wait for the receiver's request, by number.
    std::map<std::uint64_t, RequestPointer> awaited;    // Receives that wait for the payload, by number.
    RequestPointer direct;                              // Receive whose eager message is arriving in its buffer.
    ArrivalPointer arriving;                            // Eager message that is arriving in the queue.
  };

  // Frames and events of links.
  Result<std::byte*> begin_frame(Rank rank, const MessageFrame& frame) override;
  Status end_frame(Rank rank, const MessageFrame& frame) override;
  void end_sent(const RequestPointer& request) override;
  void end_side(Rank rank, LinkSide side) override;

  RequestPointer begin(const MessageCall& call);
  void end(const RequestPointer& request, Status status, const MessageInfo& info = {});
  void end_early(const RequestPointer& request, const Status& reason);  // With `reason`, unless this rank leaves.
  Status check_present(const MessageCall& call);
  bool all_have_left();

  MessageLink& out(Rank rank) { return links_.link(rank, LinkSide::out); }
  MessageLink& in(Rank rank) { return links_.link(rank, LinkSide::in); }

  void send_to_self(const RequestPointer& request, const MessageFrame& frame);
  RequestPointer withdraw(const MessageRequest& request);
  void end_announcement(Rank rank, const MessageFrame& frame);
  void end_announced(Rank rank, const MessageFrame& frame);

  std::byte* begin_eager(Rank rank, const MessageFrame& frame);
  void end_eager(Rank rank, const MessageFrame& frame);
  void accept(const ArrivalPointer& arrival, const RequestPointer& receive);
  void refuse(const MessageArrival& arrival, const RequestPointer& receive);
  void credit(Rank rank, std::uint64_t bytes);
  std::vector<RequestPointer> take_incoming(Peer& source);

  const MessageMembership& membership_;
  MessageLinks& links_;
  std::map<Rank, Peer> peers_;
  MessageMatching matching_;
  std::vector<EndedRequest> ended_;
  std::uint64_t next_number_ = 1;
  std::uint64_t incomplete_ = 0;
  bool leaving_ = false;
};

}  // namespace tutti
