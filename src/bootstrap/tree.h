// A binomial tree over all ranks, for small exchanges: rank r's subtree is the ranks from r on, as many as r's lowest
// set bit says, so that what a subtree gathers is one run of records. Two messages per rank, 2 log2(n) deep.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/channel.h"
#include "src/bootstrap/watch.h"

namespace tutti {

class Tree {
 public:
  Tree(Rank self, Rank ranks) : self_(self), ranks_(ranks) {}

  static Rank parent_of(Rank rank) { return rank & (rank - 1); }  // Of all but 0.
  static Rank end_of(Rank rank, Rank ranks);                      // The subtree is [rank, end).
  std::vector<Rank> children() const;

  // Takes the channel to the parent or to a child.
  Status connect(Rank neighbour, ControlChannel channel);
  bool complete() const;

  Status all_gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch);
  // Up from the root of the broadcast to that of the tree, and down to all others. `bytes`: as many on all ranks.
  Status broadcast(Rank root, std::span<std::byte> bytes, const Watch& watch);
  // Sends the failure to the neighbours, which pass it on. Later failures are dropped.
  void fail(const Status& status);
  // Makes waits of this tree also call `serve` whenever `descriptor` can be read; a wait fails if that fails. -1: no
  // more.
  void attend(int descriptor, std::function<Status()> serve) {
    attended_ = descriptor;
    serve_attended_ = std::move(serve);
  }

 private:
  struct Neighbour {
    ControlChannel channel;
    std::deque<ReceivedMessage> inbox;
    bool ended = false;
  };
  Status gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch);
  Status pass_on(Rank root, std::span<std::byte> bytes, const Watch& watch);
  Status take(Rank from, std::span<std::byte> target, const Watch& watch);
  Status finish_sending(const Watch& watch);
  // Waits for something to happen to any neighbour, and reads what has come.
  Status turn(const Watch& watch);
  Status read(Rank rank, Neighbour& neighbour);
  Status is_late(Rank rank, const Watch& watch) const;

  Rank self_;
  Rank ranks_;
  int attended_ = -1;
  std::function<Status()> serve_attended_;
  std::map<Rank, Neighbour> neighbours_;
  // Payload that may come: neighbours are known by then, and may be ahead by an exchange.
  std::size_t longest_ = kMaxBroadcastBytes;
  std::optional<std::pair<Code, std::string>> failure_;
};

}  // namespace tutti
