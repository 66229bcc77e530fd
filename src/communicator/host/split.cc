// Communicators out of communicators: the ranks are known and trusted already, so their sockets are passed along.
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

// Gathered from every rank. Fixed-width plain data.
struct Wish {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

// Parent ranks of the new communicator, in its order.
std::vector<Rank> members_of(const std::vector<Wish>& wishes, std::int32_t color) {
  std::vector<Rank> members;
  for (Rank rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](Rank a, Rank b) { return wishes[a].key < wishes[b].key; });
  return members;
}

// A name that was inherited would not tell the parts apart, nor from their parent.
CommunicatorOptions options_of_part(const CommunicatorOptions& given, const std::string& parent, int color) {
  CommunicatorOptions options = given;
  if (given.name != parent) return options;
  options.name = (parent.empty() ? "a split" : parent) + " (colour " + std::to_string(color) + ")";
  return options;
}

}  // namespace

Result<std::vector<Rank>> HostCommunicator::agree_on_members(int color, int key) {
  std::vector<Wish> wishes(ranks_);
  wishes[rank_] = {color, key};
  Call gather;
  gather.collective = Collective::all_gather;
  gather.type = DataType::int8;
  gather.count = sizeof(Wish);
  gather.input = reinterpret_cast<const std::byte*>(&wishes[rank_]);
  gather.output = reinterpret_cast<std::byte*>(wishes.data());
  CommunicatorOptions options = options_;  // Not what the caller forces upon collectives of its own.
  options.algorithm = options.protocol = options.compression = "";
  options.max_relative_error = 0;
  options.forced = kSplitCollective;  // Its own form of call: it matches no all_gather of the caller's.
  if (auto prepared = prepare_call(gather, options); prepared.ok()) {
    prepared.value()->record.collective = kSplitCollective;
  }
  TUTTI_CHECK_OK(run(gather, &options));
  return color < 0 ? std::vector<Rank>() : members_of(wishes, color);
}

// The peer may have sent addresses of lanes before it, and may not have come here yet.
Result<ReceivedFrame> HostCommunicator::await_passed(Rank peer, FrameKind kind, const Deadline& deadline) {
  const std::string doing = kind == FrameKind::socket ? "the communicator was split" : "ranks shared memory";
  for (;;) {
    TUTTI_CHECK_OK(links_.collect(peer));
    if (auto passed = links_.take_passed(peer, kind)) return std::move(*passed);
    if (spans_hosts_) poll_notifications();
    if (board_.failed()) return board_.failure(rank_);
    if (const auto dead = mesh_.find_dead()) return remote_error(mesh_.death_report(*dead, "while " + doing));
    if (deadline.passed())
      return timeout_error("rank " + std::to_string(peer) + " did not come in time while " + doing);
    mesh_.wait(peer, Watch{deadline, board_.failed_word()}.poll_ms());
  }
}

// Of each pair, the rank that comes first in the parent makes the contact.
Result<Mesh> HostCommunicator::split_mesh(const std::vector<Rank>& members, Rank self, const Deadline& deadline) {
  std::vector<Contact> contacts(members.size());
  Frame frame;
  frame.kind = FrameKind::socket;
  for (Rank other = 0; other < members.size(); ++other) {
    if (members[other] <= rank_) continue;
    auto further = TUTTI_TRY(mesh_.further(members[other]));
    contacts[other] = std::move(further.first);
    TUTTI_CHECK_OK(mesh_.send(members[other], frame, further.second));
  }
  for (Rank other = 0; other < members.size(); ++other) {
    if (members[other] >= rank_) continue;
    ReceivedFrame received = TUTTI_TRY(await_passed(members[other], FrameKind::socket, deadline));
    contacts[other] = std::move(received.contact);
  }
  return Mesh(self, std::move(contacts), mesh_.hosts().of(members, board_.last(rank_)));
}

Status HostCommunicator::pass(Rank to, int descriptor) {
  Frame frame;
  frame.kind = FrameKind::memory;
  return mesh_.send(to, frame, descriptor);
}

Result<File> HostCommunicator::take_passed(Rank from) {
  ReceivedFrame passed = TUTTI_TRY(await_passed(from, FrameKind::memory, Deadline::after_ms(options_.init_timeout_ms)));
  return std::move(passed.file);
}

Result<std::unique_ptr<Communicator>> HostCommunicator::make_part(const std::vector<Rank>& members,
                                                                  const CommunicatorOptions& options) {
  const auto self = static_cast<Rank>(std::find(members.begin(), members.end(), rank_) - members.begin());
  const Watch watch{Deadline::after_ms(options.init_timeout_ms), board_.failed_word()};
  Mesh mesh = TUTTI_TRY(split_mesh(members, self, watch.deadline));
  Board board = TUTTI_TRY(share_board(mesh, self, static_cast<Rank>(members.size()), watch));
  return std::unique_ptr<Communicator>(std::make_unique<HostCommunicator>(
      self, std::move(mesh), std::move(board), options, one_process_ ? Spread::one_process : Spread::many_processes));
}

// A rank that fails here, or lacks memory, has peers that wait for it: all are told.
Result<std::unique_ptr<Communicator>> HostCommunicator::split(int color, int key, const CommunicatorOptions& options) {
  auto members = caught([&] { return agree_on_members(color, key); });
  if (!members.ok()) return reported(std::move(members).status()).during("gathering the colours of a split");
  if (members.value().empty()) return std::unique_ptr<Communicator>();
  auto part = caught([&] { return make_part(members.value(), options_of_part(options, options_.name, color)); });
  if (part.ok()) return part;
  return fail(std::move(part).status());
}

}  // namespace tutti
