#include "src/bootstrap/tree.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti {

Rank Tree::end_of(Rank rank, Rank ranks) {
  const Rank size = rank == 0 ? ranks : rank & (~rank + 1);
  return size >= ranks - rank ? ranks : rank + size;
}

std::vector<Rank> Tree::children() const {
  std::vector<Rank> list;
  const Rank end = end_of(self_, ranks_);
  for (Rank step = 1; step < end - self_; step *= 2) list.push_back(self_ + step);
  return list;
}

Status Tree::connect(Rank tree_peer, ControlChannel channel) {
  const std::vector<Rank> all = children();
  const bool related =
      (self_ != 0 && tree_peer == parent_of(self_)) || std::count(all.begin(), all.end(), tree_peer) != 0;
  if (!related || tree_peers_.contains(tree_peer)) {
    return remote_error("unexpected connection from rank " + std::to_string(tree_peer));
  }
  tree_peers_[tree_peer].channel = std::move(channel);
  return {};
}

bool Tree::complete() const { return tree_peers_.size() == children().size() + (self_ != 0 ? 1 : 0); }

Status Tree::all_gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch) {
  TUTTI_ASSERT(records.size() == bytes_per_rank * ranks_);
  if (failure_) return {failure_->first, failure_->second};
  longest_ = std::max(longest_, records.size());
  Status status = gather(records, bytes_per_rank, watch);
  if (!status.ok()) fail(status);
  return status;
}

Status Tree::gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch) {
  const auto run = [&](Rank begin) {
    return records.subspan(begin * bytes_per_rank, (end_of(begin, ranks_) - begin) * bytes_per_rank);
  };
  const std::vector<Rank> below = children();
  for (const Rank child : below) TUTTI_CHECK_OK(take(child, run(child), watch));
  if (self_ != 0) {
    const Rank parent = parent_of(self_);
    // A disconnected parent is detected while waiting for its answer.
    if (!tree_peers_[parent].ended) (void)tree_peers_[parent].channel.send(Message::data, run(self_)).ok();
    TUTTI_CHECK_OK(take(parent, records, watch));
  }
  for (auto child = below.rbegin(); child != below.rend(); ++child) {  // The deepest subtree first.
    (void)tree_peers_[*child].channel.send(Message::data, records).ok();
  }
  return finish_sending(watch);
}

Status Tree::broadcast(Rank root, std::span<std::byte> bytes, const Watch& watch) {
  TUTTI_ASSERT(root < ranks_ && bytes.size() <= kMaxBroadcastBytes);
  if (failure_) return {failure_->first, failure_->second};
  Status status = pass_on(root, bytes, watch);
  if (!status.ok()) fail(status);
  return status;
}

// Every rank receives the bytes once: ranks between `root` and rank 0 on the way up, all others from their parents.
Status Tree::pass_on(Rank root, std::span<std::byte> bytes, const Watch& watch) {
  std::vector<Rank> below = children();
  const auto leads_up = [&](Rank child) { return child <= root && root < end_of(child, ranks_); };
  const bool passes_up = root >= self_ && root < end_of(self_, ranks_);
  for (const Rank child : below)
    if (root != self_ && leads_up(child)) TUTTI_CHECK_OK(take(child, bytes, watch));
  if (self_ != 0 && passes_up) (void)tree_peers_[parent_of(self_)].channel.send(Message::data, bytes).ok();
  if (!passes_up) TUTTI_CHECK_OK(take(parent_of(self_), bytes, watch));
  std::erase_if(below, leads_up);
  for (auto child = below.rbegin(); child != below.rend(); ++child)
    (void)tree_peers_[*child].channel.send(Message::data, bytes).ok();
  return finish_sending(watch);
}

Status Tree::take(Rank from, std::span<std::byte> target, const Watch& watch) {
  TreePeer& tree_peer = tree_peers_[from];
  while (tree_peer.inbox.empty()) {
    TUTTI_CHECK_OK(is_late(from, watch));
    TUTTI_CHECK_OK(poll_once(watch));
    for (auto& [rank, other] : tree_peers_) {
      if (!other.ended || !other.inbox.empty()) continue;  // A peer that has ended cannot have received its answer yet.
      return remote_error("rank " + std::to_string(rank) + " died, or left too early");
    }
  }
  const ReceivedMessage message = std::move(tree_peer.inbox.front());
  tree_peer.inbox.pop_front();
  if (message.payload.size() != target.size()) {
    return invalid_usage("rank " + std::to_string(from) + " gathered " + std::to_string(message.payload.size()) +
                         " bytes where " + std::to_string(target.size()) +
                         " were awaited: the ranks make different calls");
  }
  std::copy(message.payload.begin(), message.payload.end(), target.begin());
  return {};
}

// A child that has received its answer may leave at once.
Status Tree::finish_sending(const Watch& watch) {
  for (auto& [rank, tree_peer] : tree_peers_) {
    while (tree_peer.channel.unsent() && !tree_peer.ended) {
      TUTTI_CHECK_OK(is_late(rank, watch));
      TUTTI_CHECK_OK(poll_once(watch));
    }
    if (tree_peer.channel.unsent()) return remote_error("rank " + std::to_string(rank) + " died");
  }
  return {};
}

Status Tree::is_late(Rank rank, const Watch& watch) const {
  if (watch.aborted()) return aborted_error("rank " + std::to_string(self_) + " aborted");
  if (!watch.deadline.passed()) return {};
  const bool below = rank > self_;
  const Rank last = below ? end_of(rank, ranks_) - 1 : rank;
  const std::string who = last == rank ? "rank " + std::to_string(rank)
                                       : "one of ranks " + std::to_string(rank) + " to " + std::to_string(last);
  return timeout_error("rank " + std::to_string(self_) + " waited too long for " + who);
}

Status Tree::poll_once(const Watch& watch) {
  std::vector<pollfd> polled;
  std::vector<Rank> ranks;
  for (const auto& [rank, tree_peer] : tree_peers_) {
    if (tree_peer.ended) continue;
    polled.push_back({tree_peer.channel.descriptor(), tree_peer.channel.events(), 0});
    ranks.push_back(rank);
  }
  polled.push_back({attended_, POLLIN, 0});  // poll(2) ignores -1.
  if (::poll(polled.data(), polled.size(), watch.poll_ms()) < 0 && errno != EINTR) return system_error("poll the tree");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (polled[i].revents != 0) TUTTI_CHECK_OK(read(ranks[i], tree_peers_[ranks[i]]));
  }
  return polled.back().revents != 0 && attended_ >= 0 ? serve_attended_() : Status();
}

Status Tree::read(Rank rank, TreePeer& tree_peer) {
  if (!tree_peer.channel.flush().ok()) tree_peer.ended = true;
  for (;;) {
    Result<std::optional<ReceivedMessage>> received = tree_peer.channel.receive(longest_);
    if (!received.ok()) {
      tree_peer.ended = true;
      Status status = std::move(received).status();
      if (status.code() == Code::remote && status.message() != "the connection ended") {
        return std::move(status).during("listening to rank " + std::to_string(rank));
      }
      return {};
    }
    if (!received.value()) return {};
    if (received.value()->kind != Message::data) return failure_in(*received.value());
    tree_peer.inbox.push_back(std::move(*received.value()));
  }
}

void Tree::fail(const Status& status) {
  if (failure_) return;
  failure_ = {status.code(), status.message()};
  for (auto& [rank, tree_peer] : tree_peers_) {
    if (!tree_peer.ended) (void)tree_peer.channel.send_failure(status).ok();
  }
}

}  // namespace tutti
