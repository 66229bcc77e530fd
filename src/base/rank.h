// Rank number: 0 to the number of ranks - 1.
#pragma once

#include <cstdint>

namespace tutti {

using Rank = std::uint32_t;

}  // namespace tutti
