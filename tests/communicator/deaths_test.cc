// Reports about a rank that ended without leaving the communicator.
#include <gtest/gtest.h>

#include "src/communicator/communicator.h"
#include "src/communicator/membership/control_plane.h"

namespace tutti::test {
namespace {

TEST(RankDeath, IsReportedWithNameOfDetectingRank) {
  std::vector<Mesh> meshes = Mesh::within_process(Hosts::one_host(3)).value();
  const Board board = Board::create(3).value();
  const auto join = [&](Rank rank) {
    Board own = Board::adopt(board.segment().duplicate().value(), 3).value();
    return std::make_unique<Communicator>(std::make_shared<ControlPlane>(rank, std::move(meshes[rank]), std::move(own),
                                                                         CommunicatorOptions(), Spread::one_process));
  };
  const auto first = join(0), last = join(2);
  meshes.clear();  // Closes the sockets of rank 1.
  EXPECT_EQ(last->failure().message(), "rank 1 died outside of any call");
  EXPECT_EQ(first->failure().message(), "rank 1 died outside of any call (found by rank 2)");
}

}  // namespace
}  // namespace tutti::test
