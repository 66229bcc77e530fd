// Instructions on multicast addresses, of sm_90 and later. A pack is 16 bytes.
#pragma once

#include "src/executor/thread_block/operands.h"

namespace tutti {

// Orders accesses by multicast addresses and by other addresses of the same memory.
__device__ inline void multimem_fence() { asm volatile("fence.proxy.alias;" ::: "memory"); }

// Returns the pack's sum over all ranks. Sums of 16-bit floats are accumulated in at least 32 bits.
template <typename T>
__device__ Pack multimem_sum(const std::byte* from);

template <>
__device__ inline Pack multimem_sum<float>(const std::byte* from) {
  float4 sum;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(sum.x), "=f"(sum.y), "=f"(sum.z), "=f"(sum.w)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return __builtin_bit_cast(Pack, sum);
}

template <>
__device__ inline Pack multimem_sum<double>(const std::byte* from) {
  const std::size_t address = __cvta_generic_to_global(from);
  double2 sum;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f64 %0, [%1];" : "=d"(sum.x) : "l"(address) : "memory");
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f64 %0, [%1];" : "=d"(sum.y) : "l"(address + 8) : "memory");
  return __builtin_bit_cast(Pack, sum);
}

template <>
__device__ inline Pack multimem_sum<Float16>(const std::byte* from) {
  uint4 sum;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0, %1, %2, %3}, [%4];"
               : "=r"(sum.x), "=r"(sum.y), "=r"(sum.z), "=r"(sum.w)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return __builtin_bit_cast(Pack, sum);
}

template <>
__device__ inline Pack multimem_sum<BFloat16>(const std::byte* from) {
  uint4 sum;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
               : "=r"(sum.x), "=r"(sum.y), "=r"(sum.z), "=r"(sum.w)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return __builtin_bit_cast(Pack, sum);
}

// Stores a pack to all ranks.
__device__ inline void multimem_store(std::byte* to, const Pack& pack) {
  const auto bits = __builtin_bit_cast(float4, pack);
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "f"(bits.x), "f"(bits.y), "f"(bits.z), "f"(bits.w)
               : "memory");
}

}  // namespace tutti
