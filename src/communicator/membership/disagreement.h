// Errors for ranks whose calls do not match.
#pragma once

#include <string>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/communicator/control/board.h"

namespace tutti {

// A call of a rank, as peers see it.
struct RanksCall {
  Rank rank;
  const CallRecord& record;
};

// Returns the error for two ranks that made different calls. `communicator` is its name; empty: none.
Status disagreement(const std::string& communicator, const RanksCall& ours, const RanksCall& theirs);

// A send or recv of a rank.
struct RanksMessage {
  Rank rank;
  std::string description;  // Example: "send(20 int32, to rank 0)".
};

// Returns the error for a deadlock: a send or recv waits for a rank in a collective, which waits for the sender or
// receiver. `order` describes which rank waits for which.
Status deadlock(const std::string& communicator, const RanksCall& collective, const RanksMessage& message,
                const std::string& order);

}  // namespace tutti
