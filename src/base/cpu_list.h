// Conversion of CPU sets between hexadecimal masks (NCCL, hwloc) and lists (Linux).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti {

// Converts "000000ff,ffff0000" or "0x000000ff,0xffff0000" to "16-39". Words have 32 bits, highest first; an empty word
// is 0. Fails if the mask is malformed.
Result<std::string> cpus_of_mask(std::string_view mask);
// Returns the CPU numbers in "0-3,8", in their order. Fails if the list is malformed.
Result<std::vector<std::uint32_t>> cpus_of_list(std::string_view list);
Result<std::string> mask_of_cpus(std::string_view list);

}  // namespace tutti
