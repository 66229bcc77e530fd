// A stay in the peers' memory. A call that fails returns when no living peer is reading or writing its buffers any
// more, or after kOutwaitMs: a visitor looks for failures before its first fold and after its last, and one that is
// stopped, or in the middle of a large fold, may stay longer. One that succeeds has read nothing that a failed peer has
// since used for something else.
#pragma once

#include "src/base/clock.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"

namespace tutti {

class Visit {
 public:
  Visit(const Board& board, Rank self) : board_(board), self_(self) {}
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Due before the first access, and after the last: fails if the communicator has.
  Status check() const;

 private:
  const Board& board_;
  Rank self_;
};

// Of a communicator that has failed: until no living peer visits, nor its teams on a device, or the deadline, since one
// may stay for long. This rank visits nobody meanwhile, nor does any other that this thread drives: two such threads
// would wait for each other.
void outwait_visitors(const Board& board, Mesh& mesh, Rank self, const Deadline& deadline);

}  // namespace tutti
