// Communicators out of communicators: the ranks are known and trusted already, so their sockets are passed along.
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "src/base/clock.h"
#include "src/communicator/host_communicator.h"
#include "src/communicator/join.h"

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

}  // namespace

// Of each pair, the rank that comes first in the parent makes the sockets.
Result<Mesh> HostCommunicator::split_mesh(const std::vector<Rank>& members, Rank self, const Watch& watch) {
  std::vector<Socket> sockets(members.size());
  Frame frame;
  frame.kind = FrameKind::socket;
  for (Rank other = 0; other < members.size(); ++other) {
    if (members[other] <= rank_) continue;
    auto pair = TUTTI_TRY(open_socket_pair(SOCK_SEQPACKET));
    sockets[other] = std::move(pair.first);
    TUTTI_CHECK_OK(mesh_.send(members[other], frame, pair.second.get()));
  }
  for (Rank other = 0; other < members.size(); ++other) {
    if (members[other] >= rank_) continue;
    ReceivedFrame received = TUTTI_TRY(await_frame(mesh_, members[other], FrameKind::socket, watch));
    sockets[other] = adopt_socket(received.file.take());
  }
  return Mesh(self, std::move(sockets));
}

Result<std::unique_ptr<Communicator>> HostCommunicator::split(int color, int key, const CommunicatorOptions& options) {
  std::vector<Wish> wishes(ranks_);
  wishes[rank_] = {color, key};
  Call gather;
  gather.collective = Collective::all_gather;
  gather.type = DataType::int8;
  gather.count = sizeof(Wish);
  gather.input = reinterpret_cast<const std::byte*>(&wishes[rank_]);
  gather.output = reinterpret_cast<std::byte*>(wishes.data());
  TUTTI_CHECK_OK(run(gather, nullptr));
  if (color < 0) return std::unique_ptr<Communicator>();

  const std::vector<Rank> members = members_of(wishes, color);
  const auto self = static_cast<Rank>(std::find(members.begin(), members.end(), rank_) - members.begin());
  const Watch watch{Deadline::after_ms(options.init_timeout_ms), nullptr};
  Mesh mesh = TUTTI_TRY(split_mesh(members, self, watch));
  Board board = TUTTI_TRY(share_board(mesh, self, static_cast<Rank>(members.size()), watch));
  return std::unique_ptr<Communicator>(
      std::make_unique<HostCommunicator>(self, std::move(mesh), std::move(board), options,
                                         one_process_ ? Spread::one_process : Spread::one_host, crowded_));
}

}  // namespace tutti
