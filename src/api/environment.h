// What the environment says of communicators: defaults, and the launcher's ranks.
#pragma once

#include <memory>
#include <string>

#include "src/api/comm_handle.h"
#include "src/bootstrap/bootstrap.h"

namespace tutti {

CommunicatorOptions environment_options();
RendezvousOptions environment_rendezvous();

struct LaunchedCommunicator {
  std::unique_ptr<Communicator> communicator;
  std::string launcher;  // Empty: none, one rank.
};
Result<LaunchedCommunicator> create_launched(const CommunicatorOptions& options);

}  // namespace tutti
