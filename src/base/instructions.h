// Which of the instruction sets that kernels are compiled for this CPU runs.
#pragma once

#include <cstdint>

namespace tutti {

// Each has all that those before it have. avx2: AVX2 and F16C. avx512: AVX-512 with F, BW, VL and DQ.
enum class Instructions : std::uint8_t { baseline, avx2, avx512 };

Instructions widest_instructions();

}  // namespace tutti
