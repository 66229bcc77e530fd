// Steps of making a communicator that creating and splitting share.
#pragma once

#include "src/bootstrap/watch.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"

namespace tutti {

// The next frame from the peer, which must be of `kind`: nothing else travels while a communicator is made.
Result<ReceivedFrame> await_frame(Mesh& mesh, Rank peer, FrameKind kind, const Watch& watch);

// The first rank of each host makes its board and passes it on.
Result<Board> share_board(Mesh& mesh, Rank rank, Rank ranks, const Watch& watch);

// What came from it.
Result<Board> adopt_board(const Mesh& mesh, File file, Rank ranks);

}  // namespace tutti
