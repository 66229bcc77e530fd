// Copy by a thread block, in the widest units to which all operands are congruent. Host and device compile this source.
#pragma once

#include "src/executor/thread_block/operands.h"

namespace tutti {

// Copies units u, u + thread_count, ... of those that begin at `begin`.
template <typename Unit, std::uint32_t kCount>
TUTTI_HOST_DEVICE inline void copy_units(const FoldOperands& operands, ThreadGroup threads, std::uint64_t begin,
                                         std::uint64_t u) {
  const std::uint64_t stride = threads.count * sizeof(Unit);
  const std::uint64_t at = begin + u * sizeof(Unit);
  Unit units[kCount];
  const std::byte* from = operands.sources[0] + at;
  for (std::uint32_t n = 0; n < kCount; ++n) units[n] = load_unit<Unit>(from + n * stride);
  TUTTI_ROLLED
  for (std::uint32_t k = 0; k < operands.target_count; ++k) {
    std::byte* to = operands.targets[k] + at;  // Loaded once: a store might alias the address.
    for (std::uint32_t n = 0; n < kCount; ++n) store_unit(to + n * stride, units[n]);
  }
}

// Not inlined, like the folds.
template <typename Unit>
TUTTI_HOST_DEVICE [[gnu::noinline]] void copy_as(const FoldOperands& operands, std::uint64_t bytes,
                                                 ThreadGroup threads) {
  constexpr std::uint32_t kInFlight = 8;
  const std::uint64_t stride = threads.count;
  const std::uint64_t head = head_before(operands, sizeof(Unit), bytes);
  const std::uint64_t units = (bytes - head) / sizeof(Unit);
  std::uint64_t u = threads.index;
  TUTTI_ROLLED
  for (; u + (kInFlight - 1) * stride < units; u += kInFlight * stride)
    copy_units<Unit, kInFlight>(operands, threads, head, u);
  TUTTI_ROLLED
  for (; u < units; u += stride) copy_units<Unit, 1>(operands, threads, head, u);
  const std::uint64_t loose = bytes - units * sizeof(Unit);  // Bytes before and after the units.
  TUTTI_ROLLED
  for (std::uint64_t i = threads.index; i < loose; i += stride)
    copy_units<std::byte, 1>(operands, threads, 0, i < head ? i : i + units * sizeof(Unit));
}

// Copies the only source to every target, bit by bit.
TUTTI_HOST_DEVICE inline void thread_block_copy(const FoldOperands& operands, std::uint64_t bytes,
                                                ThreadGroup threads) {
  if (is_idle(operands, bytes, threads)) return;
  switch (common_alignment(operands)) {
    case 16: return copy_as<Pack>(operands, bytes, threads);
    case 8: return copy_as<std::uint64_t>(operands, bytes, threads);
    case 4: return copy_as<std::uint32_t>(operands, bytes, threads);
    case 2: return copy_as<std::uint16_t>(operands, bytes, threads);
    default: return copy_as<std::uint8_t>(operands, bytes, threads);
  }
}

}  // namespace tutti
