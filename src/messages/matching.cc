#include "src/messages/matching.h"

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

bool accepts(Rank peer, Rank source) { return peer == kAnyRank || peer == source; }

// Removes and returns the first element of the queue of `tag` that satisfies `matches`; null if there is none. Keeps no
// empty queues, since programs may use each tag once.
template <typename Pointer, typename Matches>
Pointer take_first(std::map<std::uint64_t, std::deque<Pointer>>& queues, std::uint64_t tag, const Matches& matches) {
  const auto queue = queues.find(tag);
  if (queue == queues.end()) return nullptr;
  const auto found = std::find_if(queue->second.begin(), queue->second.end(), matches);
  if (found == queue->second.end()) return nullptr;
  Pointer taken = std::move(*found);
  queue->second.erase(found);
  if (queue->second.empty()) queues.erase(queue);
  return taken;
}

}  // namespace

RequestPointer MessageMatching::take_receive(Rank source, std::uint64_t tag) {
  return take_first(receives_, tag,
                    [source](const RequestPointer& receive) { return accepts(receive->call().peer, source); });
}

ArrivalPointer MessageMatching::take_arrival(Rank peer, std::uint64_t tag) {
  return take_first(arrivals_, tag, [peer](const ArrivalPointer& arrival) { return accepts(peer, arrival->source); });
}

const MessageArrival* MessageMatching::find_arrival(Rank peer, std::uint64_t tag) const {
  const auto queue = arrivals_.find(tag);
  if (queue == arrivals_.end()) return nullptr;
  for (const ArrivalPointer& arrival : queue->second) {
    if (accepts(peer, arrival->source)) return arrival.get();
  }
  return nullptr;
}

RequestPointer MessageMatching::take_receive(const MessageRequest& receive) {
  return take_first(receives_, receive.call().tag,
                    [&](const RequestPointer& other) { return other.get() == &receive; });
}

void MessageMatching::remove(Rank source, std::uint64_t tag, std::uint64_t number) {
  take_first(arrivals_, tag, [&](const ArrivalPointer& arrival) {
    return arrival->source == source && arrival->frame.kind == MessageFrameKind::announced &&
           arrival->frame.number == number;
  });
}

std::vector<RequestPointer> MessageMatching::take_receives_from(Rank peer) {
  std::vector<RequestPointer> taken;
  for (auto queue = receives_.begin(); queue != receives_.end();) {
    std::erase_if(queue->second, [&](RequestPointer& receive) {
      if (receive->call().peer != peer) return false;
      taken.push_back(receive);
      return true;
    });
    queue = queue->second.empty() ? receives_.erase(queue) : std::next(queue);
  }
  return taken;
}

bool MessageMatching::has_receives_from(Rank peer) const {
  const auto of_peer = [&](const RequestPointer& receive) { return receive->call().peer == peer; };
  return std::any_of(receives_.begin(), receives_.end(),
                     [&](const auto& entry) { return std::any_of(entry.second.begin(), entry.second.end(), of_peer); });
}

std::vector<RequestPointer> MessageMatching::clear() {
  std::vector<RequestPointer> taken;
  for (auto& [tag, queue] : receives_) taken.insert(taken.end(), queue.begin(), queue.end());
  receives_.clear();
  arrivals_.clear();
  return taken;
}

}  // namespace tutti
