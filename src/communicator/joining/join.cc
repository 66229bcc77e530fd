#include "src/communicator/joining/join.h"

#include <string>
#include <utility>

namespace tutti {

Result<ReceivedFrame> await_frame(Mesh& mesh, Rank peer, FrameKind kind, const Watch& watch) {
  for (;;) {
    auto received = TUTTI_TRY(mesh.receive(peer));
    if (received && received->frame.kind == kind) return std::move(*received);
    if (received) return invalid_usage("rank " + std::to_string(peer) + " sent an unexpected control message");
    if (const auto dead = mesh.find_dead()) return mesh.death(*dead, "while joining");
    if (watch.aborted()) return aborted_error("aborted while joining");
    if (watch.deadline.passed())
      return timeout_error("rank " + std::to_string(peer) +
                           " did not answer while joining: check that it runs, or increase TUTTI_INIT_TIMEOUT_MS");
    mesh.wait(peer, watch.poll_ms());
  }
}

Result<Board> adopt_board(const Mesh& mesh, File file, Rank ranks) {
  Board board = TUTTI_TRY(Board::adopt(std::move(file), ranks, mesh.ranks_here()));
  board.set_remote_ranks(mesh.remote_ranks());
  return board;
}

Result<Board> share_board(Mesh& mesh, Rank rank, Rank ranks, const Watch& watch) {
  return share_board(mesh, rank, ranks,
                     [&](Rank peer, FrameKind kind) { return await_frame(mesh, peer, kind, watch); });
}

Result<Board> share_board(Mesh& mesh, Rank rank, Rank ranks, const AwaitFrame& await) {
  if (rank != mesh.first_local_rank()) {
    ReceivedFrame received = TUTTI_TRY(await(mesh.first_local_rank(), FrameKind::board));
    return adopt_board(mesh, std::move(received.file), ranks);
  }
  Board board = TUTTI_TRY(Board::create(ranks, mesh.ranks_here()));
  const Frame frame = {.kind = FrameKind::board};
  for (Rank peer = rank + 1; peer < ranks; ++peer) {
    if (!mesh.is_remote(peer)) TUTTI_CHECK_OK(mesh.send(peer, frame, board.segment().descriptor()));
  }
  board.set_remote_ranks(mesh.remote_ranks());
  return board;
}

}  // namespace tutti
