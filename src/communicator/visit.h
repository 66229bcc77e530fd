// A stay in the peers' memory. A call that fails does not return while a peer may still be reading or writing its
// buffers, and one that succeeds has read nothing that a failed peer has since used for something else.
#pragma once

#include "src/communicator/board.h"
#include "src/communicator/mesh.h"

namespace tutti {

class Visit {
 public:
  Visit(const Board& board, Mesh& mesh, Rank self);
  // Where the communicator has failed, waits until the peers have noticed: a second at most, as one may be stopped.
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Due before the first access, and after the last: fails if the communicator has.
  Status check() const;

 private:
  bool stays(Rank peer) const;

  const Board& board_;
  Mesh& mesh_;
  Rank self_;
};

}  // namespace tutti
