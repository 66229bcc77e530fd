#include "src/communicator/split.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "src/communicator/joining/join.h"

namespace tutti {
namespace {

constexpr std::int64_t kReasonMs = 1000;  // Time for a rank that gives up a sub-communicator to report the reason.

}  // namespace

std::vector<Rank> members_of(const std::vector<SplitArguments>& arguments, std::int32_t color) {
  std::vector<Rank> members;
  for (Rank rank = 0; rank < arguments.size(); ++rank) {
    if (arguments[rank].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](Rank a, Rank b) { return arguments[a].key < arguments[b].key; });
  return members;
}

Result<ReceivedFrame> await_passed(ControlPlane& control, Rank peer, FrameKind kind, const Deadline& deadline) {
  Membership& membership = control.membership;
  const std::string when =
      kind == FrameKind::socket ? "during the split" + membership.name() : "while ranks shared memory";
  for (;;) {
    TUTTI_CHECK_OK(membership.lanes.collect(peer));
    if (auto passed = membership.lanes.take_passed(peer, kind)) return std::move(*passed);
    TUTTI_CHECK_OK(control.failures.found_unpublished(when));
    if (deadline.passed()) return timeout_error("rank " + std::to_string(peer) + " did not respond in time " + when);
    membership.mesh.wait(peer, Watch{deadline, membership.board.failed_word()}.poll_ms());
  }
}

Splitting::Splitting(ControlPlane& parent, std::vector<Rank> members, std::int64_t timeout_ms)
    : parent_(parent),
      members_(std::move(members)),
      self_(static_cast<Rank>(std::find(members_.begin(), members_.end(), parent.membership.rank) - members_.begin())),
      deadline_(Deadline::after_ms(timeout_ms)) {}

std::string Splitting::during_split() const { return "during the split" + parent_.membership.name(); }

// In each pair, the rank with the lower number in the parent creates the contact.
Status Splitting::exchange_contacts(std::vector<Contact>& contacts) {
  Membership& membership = parent_.membership;
  for (Rank other = 0; other < members_.size(); ++other) {
    if (members_[other] <= membership.rank) continue;
    auto further = TUTTI_TRY(membership.mesh.new_contact(members_[other]));
    contacts[other] = std::move(further.first);
    TUTTI_CHECK_OK(membership.mesh.send(members_[other], {.kind = FrameKind::socket}, further.second));
  }
  for (Rank other = 0; other < members_.size(); ++other) {
    if (members_[other] >= membership.rank) continue;
    ReceivedFrame received = TUTTI_TRY(await_passed(parent_, members_[other], FrameKind::socket, deadline_));
    contacts[other] = std::move(received.contact);
  }
  return {};
}

// A rank that gives up reports the reason in the parent.
Result<ReceivedFrame> Splitting::await(Rank from, FrameKind kind) {
  const auto name_of = [&](Rank member) { return "rank " + std::to_string(members_[member]); };
  std::optional<Deadline> reason_by;
  for (;;) {
    const auto dead = mesh_->find_dead();
    auto received = TUTTI_TRY(mesh_->receive(from));
    if (received && received->frame.kind == kind) return std::move(*received);
    if (received) return invalid_usage(name_of(from) + " sent an unexpected control message " + during_split());
    TUTTI_CHECK_OK(parent_.failures.found_unpublished(during_split()));
    if (dead && !reason_by) reason_by = Deadline::after_ms(kReasonMs);
    if (dead && reason_by->passed()) return remote_error(name_of(*dead) + " gave up " + during_split());
    if (deadline_.passed()) return timeout_error(name_of(from) + " did not answer in time " + during_split());
    if (dead) {
      ::poll(nullptr, 0, 1);
    } else {
      mesh_->wait(from, Watch{deadline_, parent_.membership.board.failed_word()}.poll_ms());
    }
  }
}

// The mesh outlives a failure, so that give_up() can report the failure over it.
Result<Board> Splitting::join() {
  const Membership& membership = parent_.membership;
  const auto ranks = static_cast<Rank>(members_.size());
  std::vector<Contact> contacts(ranks);
  Status exchanged = exchange_contacts(contacts);
  const std::uint64_t number = 2 * membership.board.last(membership.rank);  // Shrinks have odd numbers.
  Mesh& mesh = mesh_.emplace(self_, std::move(contacts), membership.mesh.hosts().of(members_, number));
  TUTTI_CHECK_OK(std::move(exchanged));
  Board board =
      TUTTI_TRY(share_board(mesh, self_, ranks, [this](Rank from, FrameKind kind) { return await(from, kind); }));
  const Frame consent = {.kind = FrameKind::consent};
  if (self_ != 0) {
    TUTTI_CHECK_OK(mesh.send(0, consent));
    TUTTI_CHECK_OK(await(0, FrameKind::consent).status());
  } else {
    for (Rank other = 1; other < ranks; ++other) TUTTI_CHECK_OK(await(other, FrameKind::consent).status());
    for (Rank other = 1; other < ranks; ++other) TUTTI_CHECK_OK(mesh.send(other, consent));
  }
  return board;
}

void Splitting::give_up(const Status& reason) {
  if (mesh_) mesh_->abandon({reason.code(), kInParent + reason.message()});
}

}  // namespace tutti
