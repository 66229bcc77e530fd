// Sums of the scratch of all ranks by switches: loads from a multicast address, stores to another. Devices before sm_90
// and hosts have no such instructions, and never run plans that need them; see DeviceTraits::multicast.
#pragma once

#include "src/executor/thread_block/scalar.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#include "src/executor/thread_block/multimem_cuda.h"
#else
#include "src/executor/thread_block/multimem_none.h"
#endif

namespace tutti {

template <typename T>
TUTTI_HOST_DEVICE Pack divided(Pack pack, std::uint32_t divisor) {
  using Element = Arithmetic<T, Reduction::avg, KernelScalar>;
  Bits<T> bits[kPackBytes / sizeof(T)];
  std::memcpy(bits, &pack, sizeof pack);
  for (Bits<T>& each : bits) each = Element::write(Element::divide(Element::read(each), divisor));
  std::memcpy(&pack, bits, sizeof pack);
  return pack;
}

// Adds whole packs: parts of the staging ring begin at multiples of a pack, and none shares its last pack with another.
// Not inlined, like the folds.
template <typename T>
TUTTI_HOST_DEVICE [[gnu::noinline]] void switch_sum_of(const FoldOperands& operands, std::uint32_t divisor,
                                                       ThreadGroup threads) {
  constexpr std::uint32_t kInFlight = 4;
  const std::uint64_t packs = (operands.count * sizeof(T) + kPackBytes - 1) / kPackBytes;
  const std::uint64_t stride = threads.count;
  const std::byte* from = operands.sources[0];
  std::byte* to = operands.targets[0];
  multimem_fence();
  TUTTI_ROLLED
  for (std::uint64_t p = threads.index; p < packs; p += kInFlight * stride) {
    Pack sums[kInFlight];
    for (std::uint32_t n = 0; n < kInFlight; ++n) {
      const std::uint64_t at = p + n * stride;
      if (at < packs) sums[n] = multimem_sum<T>(from + at * kPackBytes);
    }
    for (std::uint32_t n = 0; n < kInFlight; ++n) {
      const std::uint64_t at = p + n * stride;
      if (at < packs) multimem_store(to + at * kPackBytes, divisor == 1 ? sums[n] : divided<T>(sums[n], divisor));
    }
  }
  multimem_fence();
}

// Stores the sum of the only source over all ranks to the only target of all ranks. For pairs of types and reductions
// that switches_add().
TUTTI_HOST_DEVICE inline void switch_sum(const FoldTask& task, FoldOperands operands, ThreadGroup threads) {
  const FoldForm form = form_of(task.type, task.reduction);
  const std::uint32_t divisor = task.reduction == Reduction::avg ? task.ranks : 1;
  operands.count *= form.parts;
  switch (form.type) {
    case DataType::float16: return switch_sum_of<Float16>(operands, divisor, threads);
    case DataType::bfloat16: return switch_sum_of<BFloat16>(operands, divisor, threads);
    case DataType::float32: return switch_sum_of<float>(operands, divisor, threads);
    case DataType::float64: return switch_sum_of<double>(operands, divisor, threads);
    default: return;
  }
}

}  // namespace tutti
