// Describes a wait for error messages and warnings, with the chain of ranks that wait for each other. Its end is the
// rank that holds up the others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/communicator/control/wait_record.h"
#include "src/communicator/membership/current_call.h"
#include "src/communicator/membership/membership.h"

namespace tutti {

// A rank that waits for `peer`.
struct ChainedWait {
  Rank rank = 0;
  Rank peer = 0;
  WaitingCall call = WaitingCall::send;
};

// Returns the waits from `first` on. The last peer does not wait, or is in the chain already. The wait that a stopped
// rank showed last may be over, so only ranks that poll within `within_ms` count. Ranks of other hosts must have been
// asked for their waits. Calls `meanwhile` repeatedly, which must poll for the answers.
std::vector<ChainedWait> follow_waits(const Membership& membership, Rank first, std::int64_t within_ms,
                                      const std::function<void()>& meanwhile);

// The rank that holds up this rank: the end of the chain, or `first` if the waits form a cycle.
Rank end_of(const std::vector<ChainedWait>& chain, Rank self, Rank first);

// Example: " (rank 0 waits for rank 3, which waits for rank 4 in a send)"; empty for an empty chain.
std::string describe(const std::vector<ChainedWait>& chain, Rank self, Rank first);

// Returns the awaited rank, and which ranks have not called the running collective or have not finalized. Example:
// "rank 1, which has not called it".
std::string describe_awaited(const Membership& membership, const CurrentCall& current, Rank peer);

// Returns advice for the usual reason of a long wait. Example: ": if one thread ..."; empty if there is none.
std::string wait_hint(const Membership& membership, const CurrentCall& current);

}  // namespace tutti
