// Membership of a rank in a communicator on host memory: its number and options, its connections to the other ranks,
// and the state that ranks share. The other classes of the folder use it, and leave its setup to it.
#pragma once

#include <cstdint>
#include <string>

#include "src/communicator/communicator.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/control/regions.h"
#include "src/communicator/waiting/links.h"

namespace tutti {

// Processes of the ranks of a communicator.
enum class Spread : std::uint8_t { one_process, many_processes };

// Only the thread that runs calls may use it, except the board, the constants, and the functions of the mesh by which
// Notifications and Failures work.
struct Membership {
  Membership(Rank self, Mesh connections, Board shared, CommunicatorOptions given, Spread spread);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  Spread spread() const { return one_process ? Spread::one_process : Spread::many_processes; }
  // Returns the name for messages, such as " on gradients"; empty if the communicator has none.
  std::string name() const { return options.name.empty() ? "" : " on " + options.name; }

  CommunicatorOptions options;
  Mesh mesh;
  Board board;
  const Rank rank;
  const Rank ranks;
  const bool one_process;  // All ranks are threads of this process.
  const bool spans_hosts;  // There are ranks on other hosts.
  PeerRegions regions;
  Links links;
};

}  // namespace tutti
