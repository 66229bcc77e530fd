#include "src/communicator/control/proposals.h"

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

// Payload of proposal and refusal frames.
struct Proposal {
  std::uint64_t number;
  ExcludedList list;
};
static_assert(sizeof(Proposal) == 152);

struct Refusal {
  std::uint64_t number;
  ErrorPayload reason;
};
static_assert(sizeof(Refusal) == 240);

void end(Proposals::Pair& pair, std::uint64_t next) {
  pair.number = next;
  pair.made = false;
  pair.theirs.reset();
  pair.contact = Contact();
}

}  // namespace

ExcludedList ExcludedList::of(const std::vector<Rank>& sorted) {
  ExcludedList list;
  list.digest = 0xcbf29ce484222325ULL;
  for (const Rank rank : sorted) list.digest = (list.digest ^ rank) * 0x100000001b3ULL;
  list.count = static_cast<std::uint32_t>(sorted.size());
  std::copy_n(sorted.begin(), std::min<std::size_t>(sorted.size(), kMaxShown), list.first.begin());
  return list;
}

std::string ExcludedList::describe() const {
  if (count == 0) return "no rank";
  const std::uint32_t shown = std::min(count, kMaxShown);
  std::string text = count == 1 ? "rank " : "ranks ";
  for (std::uint32_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + std::to_string(first[i]);
  return count == shown ? text : text + " and " + std::to_string(count - shown) + " more";
}

Result<bool> Proposals::make(Mesh& mesh, Rank peer, const ExcludedList& list, const Passage& passage) {
  Pair& pair = with(peer);
  const Frame frame = frame_of(FrameKind::proposal, Proposal{pair.number, list});
  const bool sent = TUTTI_TRY(mesh.try_send(peer, frame, passage));
  pair.made = sent;
  return sent;
}

void Proposals::withdraw(Mesh& mesh, Rank peer, const Status& reason) {
  Pair& pair = with(peer);
  if (!pair.made) return;
  // If the frame does not fit, the number of the next proposal implies the withdrawal.
  (void)mesh.try_send(peer, frame_of(FrameKind::refusal, Refusal{pair.number, ErrorPayload(reason)})).ok();
  end(pair, pair.number + 1);
}

void Proposals::conclude(Rank peer) {
  Pair& pair = with(peer);
  if (pair.made) end(pair, pair.number + 1);  // Otherwise the peer has already started the next proposal.
}

std::uint64_t Proposals::times_continued(const ExcludedList& list) const {
  const auto found = continued_.find(list.digest);
  return found == continued_.end() ? 0 : found->second;
}

Status Proposals::process(Rank peer, ReceivedFrame received) {
  const Frame& frame = received.frame;
  if (frame.kind == FrameKind::refusal) return take_refusal(peer, frame);
  const auto proposal = payload_of<Proposal>(frame);
  if (!proposal) return invalid_usage("rank " + std::to_string(peer) + " sent a broken proposal to shrink");
  Pair& pair = with(peer);
  if (proposal->number < pair.number) return {};  // The peer has not yet read the withdrawal.
  if (proposal->number > pair.number) end(pair, proposal->number);
  pair.theirs = proposal->list;
  pair.contact = std::move(received.contact);
  return {};
}

Status Proposals::take_refusal(Rank peer, const Frame& frame) {
  const auto refusal = payload_of<Refusal>(frame);
  std::optional<Status> reason = refusal ? refusal->reason.status() : std::nullopt;
  if (!reason) return invalid_usage("rank " + std::to_string(peer) + " sent a broken refusal to shrink");
  Pair& pair = with(peer);
  if (refusal->number < pair.number) return {};
  end(pair, refusal->number + 1);
  pair.withdrawn = std::move(*reason);
  return {};
}

}  // namespace tutti
