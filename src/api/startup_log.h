// Log lines at level info about a new communicator: what it uses, and which variables were set.
#pragma once

#include <string>

#include "src/communicator/communicator.h"

namespace tutti {

// Rank 0 logs version, ranks, transports and options; each other rank logs itself. Each process logs its variables
// once. `found_by`: how the ranks were found, such as the launcher and its variables.
void log_created(const Communicator& communicator, const std::string& found_by);

}  // namespace tutti
