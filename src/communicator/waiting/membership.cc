#include "src/communicator/waiting/membership.h"

#include <utility>

namespace tutti {

Membership::Membership(Rank self, Mesh connections, Board shared, CommunicatorOptions given, Spread spread)
    : options(std::move(given)),
      mesh(std::move(connections)),
      board(std::move(shared)),
      rank(self),
      ranks(board.ranks()),
      one_process(spread == Spread::one_process),
      spans_hosts(mesh.any_remote()),
      links(mesh, regions, self) {
  options.force();
}

}  // namespace tutti
