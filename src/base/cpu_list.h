// Sets of processors as text: masks of hexadecimal words, as NCCL and hwloc write them, and lists, as Linux does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti {

// "000000ff,ffff0000" or "0x000000ff,0xffff0000", 32 bits a word, the highest first; an empty word is 0. To "16-39".
Result<std::string> cpus_of_mask(std::string_view mask);
// "0-3,8": each of them, in their order.
Result<std::vector<std::uint32_t>> cpus_of_list(std::string_view list);
Result<std::string> mask_of_cpus(std::string_view list);

}  // namespace tutti
