// Choices on more GPUs than a host usually has, all of which NVLinks connect, as in an NVL72 rack.
#pragma once

#include "src/tuner/choose.h"

namespace tutti {

// Returns the algorithm; empty if the table for other GPUs applies.
std::string_view choose_in_domain(const Query& query);

}  // namespace tutti
