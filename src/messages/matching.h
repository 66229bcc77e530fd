// Matching of messages and receives by source and tag. Messages of one rank with equal tags match in the order in which
// they were sent, receives in the order in which they were posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "src/messages/frame.h"
#include "src/messages/request.h"

namespace tutti {

using RequestPointer = std::shared_ptr<MessageRequest>;

// A message that has arrived, or begun to arrive, at its receiver.
struct MessageArrival {
  Rank source = 0;
  MessageFrame frame;           // Header of the message: eager or announced.
  std::vector<std::byte> data;  // Elements of an eager message.
  bool whole = false;           // All elements of an eager message have arrived.
  RequestPointer receiver;      // The receive that took the message before it was whole.
  RequestPointer sender;        // For a message to self: its send. Elements are in the buffer of the send.
};
using ArrivalPointer = std::shared_ptr<MessageArrival>;

// Not thread-safe.
class MessageMatching {
 public:
  // Removes and returns the first receive that matches a message; null if there is none.
  RequestPointer take_receive(Rank source, std::uint64_t tag);
  // Removes and returns the first message that matches a receive; null if there is none.
  ArrivalPointer take_arrival(Rank peer, std::uint64_t tag);
  const MessageArrival* find_arrival(Rank peer, std::uint64_t tag) const;  // Like take_arrival(), but keeps it.

  void add(RequestPointer receive) { receives_[receive->call().tag].push_back(std::move(receive)); }
  void add(ArrivalPointer arrival) { arrivals_[arrival->frame.tag].push_back(std::move(arrival)); }

  RequestPointer take_receive(const MessageRequest& receive);  // Removes and returns a receive; null if it is absent.
  // Removes announced message `number` of a rank.
  void remove(Rank source, std::uint64_t tag, std::uint64_t number);
  // Removes and returns the receives whose peer is `peer`, which may be kAnyRank.
  std::vector<RequestPointer> take_receives_from(Rank peer);
  bool has_receives_from(Rank peer) const;
  // Removes and returns all receives, and drops all messages.
  std::vector<RequestPointer> clear();

 private:
  std::map<std::uint64_t, std::deque<RequestPointer>> receives_;  // By tag.
  std::map<std::uint64_t, std::deque<ArrivalPointer>> arrivals_;  // By tag.
};

}  // namespace tutti
