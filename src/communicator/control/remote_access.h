// A stay in the peers' memory. A call that fails returns when no living peer is reading or writing its buffers any
// more, or after kRemoteAccessMs: a remote_access looks for failures before its first fold and after its last, and one
// that is stopped, or in the middle of a large fold, may stay longer. One that succeeds has read nothing that a failed
// peer has since used for something else.
#pragma once

#include "src/base/clock.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"

namespace tutti {

class RemoteAccess {
 public:
  RemoteAccess(const Board& board, Rank self) : board_(board), self_(self) {}
  ~RemoteAccess();
  RemoteAccess(const RemoteAccess&) = delete;
  RemoteAccess& operator=(const RemoteAccess&) = delete;

  // Due before the first access, and after the last: fails if the communicator has.
  Status check() const;

 private:
  const Board& board_;
  Rank self_;
};

// Failed communicator: waits until no living peer, nor its thread blocks on a device, accesses this rank's memory,
// or until the deadline, as a peer may stay for long. This rank must not access remote memory meanwhile, nor may
// any other rank that this thread drives: two such threads would wait for each other.
void wait_for_remote_access(const Board& board, Mesh& mesh, Rank self, const Deadline& deadline);

}  // namespace tutti
