// Copy by a thread block, in the widest units to which all operands are congruent. Host and device compile this source.
#pragma once

#include "src/executor/thread_block/operands.h"

namespace tutti {

// A copy by a group of threads. Kept in registers: stores might alias operands in memory.
struct GroupCopy {
  const std::byte* from;
  std::byte* const* targets;
  std::uint32_t target_count;
  ThreadGroup threads;
};

// Copies units u, u + thread_count, ... of those that begin at `begin`.
template <typename Unit, std::uint32_t kCount>
TUTTI_HOST_DEVICE inline void copy_units(const GroupCopy& copy, std::uint64_t begin, std::uint64_t u) {
  const std::uint64_t stride = copy.threads.count * sizeof(Unit);
  const std::uint64_t at = begin + u * sizeof(Unit);
  Unit units[kCount];
  const std::byte* from = copy.from + at;
  for (std::uint32_t n = 0; n < kCount; ++n) units[n] = load_unit<Unit>(from + n * stride);
  TUTTI_ROLLED
  for (std::uint32_t k = 0; k < copy.target_count; ++k) {
    std::byte* to = copy.targets[k] + at;  // Loaded once: a store might alias the address.
    for (std::uint32_t n = 0; n < kCount; ++n) store_unit(to + n * stride, units[n]);
  }
}

// Not inlined, like the folds.
template <typename Unit>
TUTTI_HOST_DEVICE [[gnu::noinline]] void copy_as(const FoldOperands& operands, std::uint64_t bytes,
                                                 ThreadGroup threads) {
  constexpr std::uint32_t kInFlight = 8;
  const GroupCopy copy = {operands.sources[0], operands.targets, operands.target_count, threads};
  const std::uint64_t stride = threads.count;
  const std::uint64_t head = head_before(operands, sizeof(Unit), bytes);
  const std::uint64_t units = (bytes - head) / sizeof(Unit);
  std::uint64_t u = threads.index;
  TUTTI_ROLLED
  for (; u + (kInFlight - 1) * stride < units; u += kInFlight * stride) copy_units<Unit, kInFlight>(copy, head, u);
  TUTTI_ROLLED
  for (; u < units; u += stride) copy_units<Unit, 1>(copy, head, u);
  const std::uint64_t loose = bytes - units * sizeof(Unit);  // Bytes before and after the units.
  TUTTI_ROLLED
  for (std::uint64_t i = threads.index; i < loose; i += stride)
    copy_units<std::byte, 1>(copy, 0, i < head ? i : i + units * sizeof(Unit));
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
