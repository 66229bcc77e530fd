// Log lines at level info about a new communicator: what it uses, and which variables were set.
#pragma once

#include <string>

#include "src/communicator/communicator.h"

namespace tutti {

// Rank 0 logs version, ranks, transports and options; each other rank logs itself. Each process logs its variables
// once. `created_by`: what created the communicator, such as the launcher and its variables.
void log_created(const Communicator& communicator, const std::string& created_by);

}  // namespace tutti
