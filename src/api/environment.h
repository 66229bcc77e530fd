// Environment variables for communicators: default options, and the ranks that a launcher started.
#pragma once

#include <memory>

#include "src/api/comm_handle.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/launcher.h"

namespace tutti {

CommunicatorOptions environment_options();
RendezvousOptions environment_rendezvous();

// Joins the ranks that the launcher started. Without a launcher: a communicator of one rank. Returns tutti_aborted soon
// after *options.abort becomes nonzero.
Result<std::unique_ptr<Communicator>> create_launched(const LaunchedRank& launched, const CommunicatorOptions& options);

}  // namespace tutti
