// Membership of a rank in a communicator: its number and options, its connections to the other ranks, and the state
// that ranks share. The other classes of this module and the backends use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "src/communicator/call/options.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/control/regions.h"
#include "src/communicator/membership/lane_connections.h"

namespace tutti {

// Processes of the ranks of a communicator.
enum class Spread : std::uint8_t { one_process, many_processes };

// Counts the communicators of this process.
class CommunicatorCount {
 public:
  CommunicatorCount() { ++count_; }
  ~CommunicatorCount() { --count_; }
  CommunicatorCount(const CommunicatorCount&) = delete;
  CommunicatorCount& operator=(const CommunicatorCount&) = delete;
  static bool several() { return count_ > 1; }

 private:
  inline static std::atomic<std::uint32_t> count_ = 0;
};

// Any thread may use the board, the constants and, through Notifications and Failures, the mesh. Only the thread that
// runs calls may use the regions, the lanes and the other functions of the mesh.
struct Membership {
  Membership(Rank self, Mesh connections, Board shared, CommunicatorOptions given, Spread spread)
      : options(with_forced(std::move(given))),
        mesh(std::move(connections)),
        board(std::move(shared)),
        rank(self),
        ranks(board.ranks()),
        one_process(spread == Spread::one_process),
        spans_hosts(mesh.any_remote()),
        lanes(mesh, regions, board, self) {}
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  Spread spread() const { return one_process ? Spread::one_process : Spread::many_processes; }
  // Returns the name for messages, such as " on gradients"; empty if the communicator has none.
  std::string name() const { return options.name.empty() ? "" : " on " + options.name; }

  const CommunicatorOptions options;
  Mesh mesh;
  Board board;
  const Rank rank;
  const Rank ranks;
  const bool one_process;  // All ranks are threads of this process.
  const bool spans_hosts;  // There are ranks on other hosts.
  PeerRegions regions;
  LaneConnections lanes;
  const CommunicatorCount counted;

 private:
  static CommunicatorOptions with_forced(CommunicatorOptions given) {
    given.update_agreement_hash();
    return given;
  }
};

}  // namespace tutti
