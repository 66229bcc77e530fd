// Splitting a communicator. Its ranks are already connected and authenticated, so they pass new sockets over existing
// ones.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "src/base/caught.h"
#include "src/base/clock.h"
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/host/join.h"

namespace tutti {
namespace {

constexpr std::int64_t kReasonMs = 1000;  // Time for a rank that gives up a sub-communicator to report the reason.

// Values gathered from all ranks: plain data of fixed width.
struct Wish {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

// Returns the members of the new communicator by rank in the parent, in the new order.
std::vector<Rank> members_of(const std::vector<Wish>& wishes, std::int32_t color) {
  std::vector<Rank> members;
  for (Rank rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](Rank a, Rank b) { return wishes[a].key < wishes[b].key; });
  return members;
}

// Appends the color to an inherited name, so that messages distinguish sub-communicators from each other and from the
// parent.
CommunicatorOptions options_of_part(const CommunicatorOptions& given, const std::string& parent, int color) {
  CommunicatorOptions options = given;
  if (given.name != parent) return options;
  options.name = (parent.empty() ? "a split" : parent) + " (color " + std::to_string(color) + ")";
  return options;
}

}  // namespace

Result<std::vector<Rank>> HostCommunicator::agree_on_members(int color, int key) {
  std::vector<Wish> wishes(membership().ranks);
  wishes[membership().rank] = {color, key};
  Call gather;
  gather.collective = Collective::all_gather;
  gather.type = DataType::int8;
  gather.count = sizeof(Wish);
  gather.input = reinterpret_cast<const std::byte*>(&wishes[membership().rank]);
  gather.output = reinterpret_cast<std::byte*>(wishes.data());
  // Options that the caller forces on collectives do not apply.
  CommunicatorOptions options = membership().options;
  options.algorithm = options.protocol = options.compression = "";
  options.max_relative_error = 0;
  // Distinct from all calls of the user, so that it matches no all_gather of theirs.
  options.forced = kSplitCollective;
  if (auto prepared = collectives_.prepare(gather, options); prepared.ok()) {
    prepared.value()->record.collective = kSplitCollective;
  }
  TUTTI_CHECK_OK(run(gather, &options));
  return color < 0 ? std::vector<Rank>() : members_of(wishes, color);
}

// Other frames, such as addresses of lanes, may arrive first, and the peer may be late.
Result<ReceivedFrame> HostCommunicator::await_passed(Rank peer, FrameKind kind, const Deadline& deadline) {
  const std::string when = kind == FrameKind::socket ? during_split() : "while ranks shared memory";
  for (;;) {
    TUTTI_CHECK_OK(control_.membership.links.collect(peer));
    if (auto passed = control_.membership.links.take_passed(peer, kind)) return std::move(*passed);
    TUTTI_CHECK_OK(control_.failures.found_unpublished(when));
    if (deadline.passed()) return timeout_error("rank " + std::to_string(peer) + " did not respond in time " + when);
    control_.membership.mesh.wait(peer, Watch{deadline, membership().board.failed_word()}.poll_ms());
  }
}

std::string HostCommunicator::during_split() const { return "during the split" + membership().name(); }

// In each pair, the rank with the lower number in the parent creates the contact.
Status HostCommunicator::exchange_contacts(const Part& part, std::vector<Contact>& contacts) {
  const std::vector<Rank>& members = part.members;
  Frame frame;
  frame.kind = FrameKind::socket;
  for (Rank other = 0; other < members.size(); ++other) {
    if (members[other] <= membership().rank) continue;
    auto further = TUTTI_TRY(control_.membership.mesh.further(members[other]));
    contacts[other] = std::move(further.first);
    TUTTI_CHECK_OK(control_.membership.mesh.send(members[other], frame, further.second));
  }
  for (Rank other = 0; other < members.size(); ++other) {
    if (members[other] >= membership().rank) continue;
    ReceivedFrame received = TUTTI_TRY(await_passed(members[other], FrameKind::socket, part.deadline));
    contacts[other] = std::move(received.contact);
  }
  return {};
}

// Waits for a frame from rank `from` of the sub-communicator. Errors name ranks by their numbers in the parent. A rank
// that gives up reports the reason in the parent.
Result<ReceivedFrame> HostCommunicator::await_in_part(Part& part, Rank from, FrameKind kind) {
  const auto name_of = [&](Rank member) { return "rank " + std::to_string(part.members[member]); };
  std::optional<Deadline> reason_by;
  for (;;) {
    const auto dead = part.mesh->find_dead();
    auto received = TUTTI_TRY(part.mesh->receive(from));
    if (received && received->frame.kind == kind) return std::move(*received);
    if (received) return invalid_usage(name_of(from) + " sent an unexpected control message " + during_split());
    TUTTI_CHECK_OK(control_.failures.found_unpublished(during_split()));
    if (dead && !reason_by) reason_by = Deadline::after_ms(kReasonMs);
    if (dead && reason_by->passed()) return remote_error(name_of(*dead) + " gave up " + during_split());
    if (part.deadline.passed()) return timeout_error(name_of(from) + " did not answer in time " + during_split());
    if (dead) {
      ::poll(nullptr, 0, 1);
    } else {
      part.mesh->wait(from, Watch{part.deadline, membership().board.failed_word()}.poll_ms());
    }
  }
}

Status HostCommunicator::pass(Rank to, int descriptor) {
  Frame frame;
  frame.kind = FrameKind::memory;
  return control_.membership.mesh.send(to, frame, descriptor);
}

Result<File> HostCommunicator::take_passed(Rank from) {
  ReceivedFrame passed =
      TUTTI_TRY(await_passed(from, FrameKind::memory, Deadline::after_ms(membership().options.init_timeout_ms)));
  return std::move(passed.file);
}

// The mesh outlives a failure, so that the caller can report the failure over it. No rank gets the sub-communicator
// before all ranks have sent their consent to its first rank. Until then, each of them detects a failure of the parent.
Result<std::unique_ptr<Communicator>> HostCommunicator::make_part(Part& part, const CommunicatorOptions& options) {
  const std::vector<Rank>& members = part.members;
  const auto ranks = static_cast<Rank>(members.size());
  const auto self = static_cast<Rank>(std::find(members.begin(), members.end(), membership().rank) - members.begin());
  std::vector<Contact> contacts(ranks);
  Status exchanged = exchange_contacts(part, contacts);
  Mesh& mesh =
      part.mesh.emplace(self, std::move(contacts),
                        control_.membership.mesh.hosts().of(members, membership().board.last(membership().rank)));
  TUTTI_CHECK_OK(std::move(exchanged));
  const auto await = [&](Rank from, FrameKind kind) { return await_in_part(part, from, kind); };
  Board board = TUTTI_TRY(share_board(mesh, self, ranks, await));
  Frame frame;
  frame.kind = FrameKind::consent;
  if (self != 0) {
    TUTTI_CHECK_OK(mesh.send(0, frame));
    TUTTI_CHECK_OK(await(0, FrameKind::consent).status());
  } else {
    for (Rank other = 1; other < ranks; ++other) TUTTI_CHECK_OK(await(other, FrameKind::consent).status());
    for (Rank other = 1; other < ranks; ++other) TUTTI_CHECK_OK(mesh.send(other, frame));
  }
  return std::unique_ptr<Communicator>(
      std::make_unique<HostCommunicator>(self, std::move(mesh), std::move(board), options, membership().spread()));
}

// Reports a failure on this rank to all ranks of the parent first, then to ranks that may already have the
// sub-communicator.
Result<std::unique_ptr<Communicator>> HostCommunicator::split(int color, int key, const CommunicatorOptions& options) {
  auto members = caught([&] { return agree_on_members(color, key); });
  if (!members.ok())
    return control_.failures.reported(std::move(members).status()).during("gathering the colors of a split");
  if (members.value().empty()) return std::unique_ptr<Communicator>();
  Part part = {std::move(members).value(), Deadline::after_ms(options.init_timeout_ms), std::nullopt};
  auto made = caught([&] { return make_part(part, options_of_part(options, membership().options.name, color)); });
  if (made.ok()) return made;
  Status reason = control_.failures.fail(std::move(made).status());
  if (part.mesh) part.mesh->abandon({reason.code(), kInParent + reason.message()});
  return reason;
}

}  // namespace tutti
