// Runs a rendezvous beside the caller.
#pragma once

#include <optional>
#include <string>

#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/handshake.h"

namespace tutti {

// Where ranks that know the meeting point of their job alone are given the id.
struct Invitation {
  Socket listener;
  Credentials credentials;
  std::string advice;    // What to do where ranks do not find it; see advice_for().
  std::string two_jobs;  // Advice for ranks that were started twice.
};

// Listens at `address`, at any free port.
Result<UniqueId> start_rendezvous(const RendezvousOptions& options, const Address& address,
                                  std::optional<Invitation> invitation);

}  // namespace tutti
