// A binomial tree over all ranks, for small exchanges. The subtree of rank r is [r, r + lowest set bit of r), so that a
// subtree's records are contiguous. Two messages per rank; depth 2 log2(n).
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

  static Rank parent_of(Rank rank) { return rank & (rank - 1); }  // For all ranks except 0.
  static Rank end_of(Rank rank, Rank ranks);                      // The subtree is [rank, end).
  std::vector<Rank> children() const;

  // Adds the channel to the parent or to a child.
  Status connect(Rank tree_peer, ControlChannel channel);
  bool complete() const;

  Status all_gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch);
  // Sends up from `root` to rank 0, and down to all others. All ranks pass the same size.
  Status broadcast(Rank root, std::span<std::byte> bytes, const Watch& watch);
  // Sends the failure to the parent and the children, which forward it. Later failures are dropped.
  void fail(const Status& status);
  // All waits of this tree also call `serve` when `descriptor` is readable, and fail if `serve` fails. -1: none.
  void watch_descriptor(int descriptor, std::function<Status()> serve) {
    attended_ = descriptor;
    serve_attended_ = std::move(serve);
  }

 private:
  struct TreePeer {
    ControlChannel channel;
    std::deque<ReceivedMessage> inbox;
    bool ended = false;
  };
  Status gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch);
  Status pass_on(Rank root, std::span<std::byte> bytes, const Watch& watch);
  Status take(Rank from, std::span<std::byte> target, const Watch& watch);
  Status finish_sending(const Watch& watch);
  // Waits for an event on any connection, and reads incoming data.
  Status poll_once(const Watch& watch);
  Status read(Rank rank, TreePeer& tree_peer);
  Status is_late(Rank rank, const Watch& watch) const;

  Rank self_;
  Rank ranks_;
  int attended_ = -1;
  std::function<Status()> serve_attended_;
  std::map<Rank, TreePeer> tree_peers_;
  // Maximum payload. Adjacent ranks are authenticated and may be one exchange ahead.
  std::size_t longest_ = kMaxBroadcastBytes;
  std::optional<std::pair<Code, std::string>> failure_;
};

}  // namespace tutti
