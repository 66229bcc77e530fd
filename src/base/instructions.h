// Detection of the widest instruction set that both the CPU and our kernels support.
#pragma once

#include <cstdint>

namespace tutti {

// Each set includes the previous ones. avx2: AVX2 and F16C. avx512: AVX-512 F, BW, VL and DQ.
enum class Instructions : std::uint8_t { baseline, avx2, avx512 };

Instructions widest_instructions();

}  // namespace tutti
