// Scope in which a rank accesses memory of its peers. A failed call returns when no living peer accesses its buffers,
// or after kRemoteAccessMs. A RemoteAccess checks for failures before its first fold and after its last. A stopped
// rank, or one in a large fold, may exceed the limit. A successful call has read no memory that a failed peer has
// reused.
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

  // Must be called before the first access and after the last. Fails if the communicator has failed.
  Status check() const;

 private:
  const Board& board_;
  Rank self_;
};

// For a failed communicator: waits until the deadline, or until no living peer accesses this rank's memory. This
// includes thread blocks of peers on devices. This rank must not access remote memory meanwhile. Nor must other ranks
// that this thread drives, since two such threads would wait for each other.
void wait_for_remote_access(const Board& board, Mesh& mesh, Rank self, const Deadline& deadline);

}  // namespace tutti
