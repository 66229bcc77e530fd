// The messages of a program, on the host.
#pragma once

#include "src/executor/program.h"

namespace tutti {

// Returns whether some lane has messages with inline flags. A step then has a staging buffer for each operand.
bool has_ll_messages(const Program& program);

// Returns whether each lane that this rank reads or writes has slots for all messages on it that may be in transit:
// those of the chunks between this rank's first stage with messages and the one after its last, in which a peer may
// receive. Ranks may differ: where a rank joins no steps, its lanes need slots only between a send and its receive.
bool has_slots(const Program& program, const Loop& loop);

}  // namespace tutti
