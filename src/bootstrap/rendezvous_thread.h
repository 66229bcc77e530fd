// Runs a rendezvous in a thread.
#pragma once

#include <optional>
#include <string>

#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/handshake.h"

namespace tutti {

// Gives the id to ranks that know only the rendezvous address of their job.
struct Invitation {
  Socket listener;
  Credentials credentials;
  std::string advice;    // Advice if ranks cannot reach it; see advice_for().
  std::string two_jobs;  // Advice for ranks that were started twice.
};

// Listens at `address`, on any free port.
Result<UniqueId> start_rendezvous(const RendezvousOptions& options, const Address& address,
                                  std::optional<Invitation> invitation);

}  // namespace tutti
