// Steps that creating, splitting and shrinking a communicator share.
#pragma once

#include <functional>

#include "src/base/config.h"
#include "src/bootstrap/watch.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"

namespace tutti {

// Protection of the TCP connections of communicators.
inline Protection protection_of(const Config& config) {
  if (config.encrypt) return Protection::encrypted;
  return config.check_tcp ? Protection::checked : Protection::none;
}

// Prefix of the reason for which a rank abandons a sub-communicator. The reason names ranks by their numbers in the
// parent.
inline constexpr const char* kInParent = "in the parent communicator, ";

// Waits for the next frame from the peer. Fails if it is of another kind.
Result<ReceivedFrame> await_frame(Mesh& mesh, Rank peer, FrameKind kind, const Watch& watch);

using AwaitFrame = std::function<Result<ReceivedFrame>(Rank peer, FrameKind kind)>;

// Shares one board per host. The first rank of each host creates it and sends it to the other ranks of the host, which
// wait for it.
Result<Board> share_board(Mesh& mesh, Rank rank, Rank ranks, const Watch& watch);
Result<Board> share_board(Mesh& mesh, Rank rank, Rank ranks, const AwaitFrame& await);

// Maps a board that was received from a peer.
Result<Board> adopt_board(const Mesh& mesh, File file, Rank ranks);

}  // namespace tutti
