// The rounds of a loop in which messages are sent and received.
#pragma once

#include <span>

#include "src/plan/loop.h"
#include "src/plan/plan.h"

namespace tutti {

// Returns whether a rank may await all messages that adjacent steps of a round receive, or slots for all that they
// send, before it runs any of these steps, on lanes of loop.slots slots or more. This holds if each message is sent in
// an earlier round of the loop than it is received, and its slot is written again in a later one: such steps then await
// only earlier rounds. Other steps await the same round at the latest, in an order for which the plan is verified, so
// that no ranks wait for each other. Covers the loop with its skew, or without, and any number of chunks. False for
// loops that process the latest stage first. True without messages.
bool messages_cross_rounds(std::span<const Plan> plans, const Loop& loop);

}  // namespace tutti
