// Describes a wait for error messages and warnings.
#pragma once

#include <string>

#include "src/communicator/waiting/current_call.h"
#include "src/communicator/waiting/membership.h"

namespace tutti {

// Returns the awaited rank, and which ranks have not called the running collective or have not finalized. Example:
// "rank 1, which has not called it".
std::string describe_awaited(const Membership& membership, const CurrentCall& current, Rank peer);

// Returns advice for the usual reason of a long wait. Example: ": if one thread ..."; empty if there is none.
std::string wait_hint(const Membership& membership, const CurrentCall& current);

}  // namespace tutti
