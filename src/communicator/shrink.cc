#include "src/communicator/shrink.h"

#include <algorithm>

#include "src/base/atomic.h"
#include "src/base/duration.h"
#include "src/communicator/joining/join.h"

namespace tutti {
namespace {

constexpr int kLookMs = 20;  // Interval of checks for other ranks and for aborts while the thread sleeps.

std::string rank_name(Rank rank) { return "rank " + std::to_string(rank); }

}  // namespace

Shrinking::Shrinking(Mesh& mesh, LaneConnections& lanes, ShrinkTerms terms)
    : mesh_(mesh),
      lanes_(lanes),
      proposals_(lanes.proposals()),
      terms_(std::move(terms)),
      list_(ExcludedList::of(terms_.excluded)),
      deadline_(Deadline::after_ms(terms_.timeout_ms)) {
  for (Rank rank = 0; rank < terms_.ranks; ++rank) {
    if (rank == terms_.self) self_ = static_cast<Rank>(members_.size());
    if (!std::binary_search(terms_.excluded.begin(), terms_.excluded.end(), rank)) members_.push_back(rank);
  }
  contacts_.resize(members_.size());
  passages_.resize(members_.size());
  proposed_.resize(members_.size());
}

Status Shrinking::open_sockets() {
  for (Rank member = self_ + 1; member < ranks(); ++member) {
    auto further = TUTTI_TRY(mesh_.new_contact(members_[member]));
    contacts_[member] = std::move(further.first);
    passages_[member] = std::move(further.second);
  }
  return {};
}

// Must be called after collect(), since received frames determine the number of the next proposal.
Status Shrinking::propose(Rank member) {
  if (proposed_[member]) return {};
  const bool sent = TUTTI_TRY(proposals_.make(mesh_, members_[member], list_, passages_[member]));
  if (sent) passages_[member] = {};
  proposed_[member] = sent;
  return {};
}

// Sends proposals to all ranks before it checks any, and before this rank fails. Otherwise ranks with another list, and
// excluded ranks that do not know, would wait for this rank. Excluded ranks may be dead or have full sockets.
Status Shrinking::propose_to_all() {
  Status status = open_sockets().during(rank_name(terms_.self) + " makes sockets for the shrink" + terms_.name);
  for (Rank member = 0; member < ranks(); ++member) {
    if (member == self_) continue;
    Status sent = lanes_.collect(members_[member]);
    if (sent.ok()) sent = propose(member);
    if (status.ok()) status = std::move(sent);
  }
  for (const Rank rank : terms_.excluded) (void)proposals_.make(mesh_, rank, list_, {}).ok();
  return status;
}

Status Shrinking::agree() {
  TUTTI_CHECK_OK(propose_to_all());
  for (;;) {
    std::vector<Rank> missing;
    for (Rank member = 0; member < ranks(); ++member) {
      if (member == self_) continue;
      const bool here = TUTTI_TRY(receive(member));
      if (!here) missing.push_back(members_[member]);
    }
    if (missing.empty()) break;
    TUTTI_CHECK_OK(keep_waiting(missing, "to join"));
    mesh_.wait(missing.front(), static_cast<int>(std::min<std::int64_t>(deadline_.left_ms(), kLookMs)));
  }
  for (Rank member = 0; member < ranks(); ++member) {
    if (member == self_) continue;
    Proposals::Pair& pair = proposals_.with(members_[member]);
    pair.withdrawn = Status();  // Only later withdrawals count.
    if (member < self_) contacts_[member] = std::move(pair.contact);
  }
  const std::uint64_t number = 2 * proposals_.times_continued(list_) + 1;  // Splits have even numbers.
  part_.emplace(self_, std::move(contacts_), mesh_.hosts().of(members_, number));
  return {};
}

// Returns whether both ranks have proposed. Processes the last frames of a dead peer before its death is reported.
Result<bool> Shrinking::receive(Rank member) {
  const Rank peer = members_[member];
  const bool dead = mesh_.is_dead(peer);
  TUTTI_CHECK_OK(lanes_.collect(peer));
  const Proposals::Pair& pair = proposals_.with(peer);
  if (proposed_[member] && !pair.made) return gave_up(peer);
  if (pair.theirs && !(*pair.theirs == list_)) return disagreement(peer);
  if (dead) return mesh_.death(peer, "before or during the shrink" + terms_.name);
  if (pair.theirs) TUTTI_CHECK_OK(propose(member));
  if (pair.theirs) return proposed_[member] && (member > self_ || pair.contact);
  if (mesh_.has_left(peer))
    return invalid_usage(rank_name(peer) + " has destroyed its communicator, and cannot join the shrink" + terms_.name);
  TUTTI_CHECK_OK(propose(member));
  return false;
}

Status Shrinking::gave_up(Rank peer) const {
  const Status& reason = proposals_.with(peer).withdrawn;
  if (reason.ok()) return remote_error(rank_name(peer) + " gave up the shrink" + terms_.name);
  return reason.copy();
}

Status Shrinking::disagreement(Rank peer) const {
  return invalid_usage("ranks disagree on the ranks that the shrink" + terms_.name +
                       " excludes: " + rank_name(terms_.self) + " excludes " + list_.describe() + ", and " +
                       rank_name(peer) + " excludes " + proposals_.with(peer).theirs->describe() +
                       ": all remaining ranks must pass the same list");
}

Status Shrinking::keep_waiting(const std::vector<Rank>& missing, const char* action) const {
  for (const std::uint32_t* word : {terms_.parent_abort, terms_.new_abort}) {
    if (word != nullptr && load_acquire(word) != 0)
      return aborted_error(rank_name(terms_.self) + " aborted the shrink" + terms_.name);
  }
  if (!deadline_.passed()) return {};
  std::string text = rank_name(terms_.self) + " waited " + describe_ms(terms_.timeout_ms) + " for " +
                     ExcludedList::of(missing).describe() + " " + action + " the shrink" + terms_.name;
  // An excluded rank may have found that this rank's list differs from its own.
  for (const Rank rank : terms_.excluded) (void)lanes_.collect(rank).ok();
  std::vector<Rank> others = missing;
  others.insert(others.end(), terms_.excluded.begin(), terms_.excluded.end());
  for (const Rank peer : others) {
    const Status& reason = proposals_.with(peer).withdrawn;
    if (!reason.ok()) return {reason.code(), text + "; " + rank_name(peer) + " gave up before: " + reason.message()};
  }
  return timeout_error(text);
}

// A rank that closes its sockets has sent the reason first, unless it died.
Result<ReceivedFrame> Shrinking::await(Rank member, FrameKind kind) {
  for (;;) {
    const auto dead = part_->find_dead();
    for (Rank other = 0; other < ranks(); ++other) {
      if (other == self_) continue;
      TUTTI_CHECK_OK(lanes_.collect(members_[other]));
      if (!proposals_.with(members_[other]).withdrawn.ok()) return gave_up(members_[other]);
    }
    auto received = TUTTI_TRY(part_->receive(member));
    if (received && received->frame.kind == kind) return std::move(*received);
    if (received) return invalid_usage(rank_name(members_[member]) + " sent an unexpected control message");
    if (dead && !part_->abandonment(*dead).ok()) return part_->abandonment(*dead);
    if (dead) return mesh_.death(members_[*dead], "during the shrink" + terms_.name);
    TUTTI_CHECK_OK(keep_waiting({members_[member]}, "to finish"));
    part_->wait(member, static_cast<int>(std::min<std::int64_t>(deadline_.left_ms(), kLookMs)));
  }
}

Result<Board> Shrinking::share_board() {
  if (self_ != 0) {
    TUTTI_CHECK_OK(part_->send(0, {.kind = FrameKind::consent}));
    if (!part_->is_remote(0)) {
      ReceivedFrame received = TUTTI_TRY(await(0, FrameKind::board));
      return tutti::adopt_board(*part_, std::move(received.file), ranks());
    }
    // All ranks have consented.
    TUTTI_CHECK_OK(await(0, FrameKind::consent).status());
    return tutti::share_board(*part_, self_, ranks(), Watch{deadline_});
  }
  for (Rank member = 1; member < ranks(); ++member) TUTTI_CHECK_OK(await(member, FrameKind::consent).status());
  for (Rank member = 1; member < ranks(); ++member) {
    if (part_->is_remote(member)) TUTTI_CHECK_OK(part_->send(member, {.kind = FrameKind::consent}));
  }
  return tutti::share_board(*part_, 0, ranks(), Watch{deadline_});
}

void Shrinking::conclude() {
  for (const Rank member : members_) proposals_.conclude(member);
  proposals_.count_continuation(list_);
  const Status gone = remote_error(rank_name(terms_.self) + " continued without " + list_.describe());
  for (const Rank rank : terms_.excluded) proposals_.withdraw(mesh_, rank, gone);
}

void Shrinking::give_up(const Status& reason) {
  for (Rank rank = 0; rank < terms_.ranks; ++rank) proposals_.withdraw(mesh_, rank, reason);
  if (part_) part_->abandon({reason.code(), kInParent + reason.message()});
}

}  // namespace tutti
