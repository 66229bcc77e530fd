// The messages of a program, on the host.
#pragma once

#include "src/executor/program.h"

namespace tutti {

// Returns whether some lane has messages with inline flags. A step then has a staging buffer for each operand.
bool has_ll_messages(const Program& program);

// Returns whether each lane that this rank reads or writes has slots for all messages on it that may be in transit:
// those of the chunks between the first stage with messages and the one after the last, in which a peer may receive.
// Lanes between other ranks are assumed to be alike, as they are in all algorithms.
bool has_slots(const Program& program, const Loop& loop);

}  // namespace tutti
