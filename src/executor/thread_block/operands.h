// Operands of a thread block's fold, and access in units of 16 bytes where alignment permits. Host and device compile
// this source.
#pragma once

#include <cstring>

#include "src/base/platform.h"
#include "src/base/types.h"
#include "src/compression/format.h"

namespace tutti {

// Operation of a fold; constant for all steps of a call.
struct FoldTask {
  DataType type = DataType::float32;
  Reduction reduction = Reduction::sum;
  CompressionFormat compression = CompressionFormat::none;  // Compression of messages.
  // 1: `integer_scale` is the address of the scalar, which is read when the call runs.
  std::uint8_t scale_in_memory = 0;
  std::uint32_t ranks = 1;  // avg: divisor.
  double scale = 1;         // pre_mul_sum of floats; integers use `integer_scale`.
  std::int64_t integer_scale = 1;
};
static_assert(sizeof(FoldTask) == 24);

// Operands of one fold; shared by the thread block.
struct FoldOperands {
  const std::byte* const* sources = nullptr;
  const std::uint8_t* scaled = nullptr;  // pre_mul_sum: 1 for this rank's own input.
  std::byte* const* targets = nullptr;   // Each equals a source (in place) or overlaps none.
  std::uint32_t source_count = 0;
  std::uint32_t target_count = 0;
  std::uint64_t count = 0;                // Elements.
  bool complete = false;                  // avg: divide by `ranks`.
  bool from_all = false, to_all = false;  // The only source, or the only target, is a multicast address.
  bool aligned = false;                   // All addresses are known to be multiples of a pack.
  std::uint64_t head = 0;                 // Set by thread_block_fold(): bytes before the first pack.
};

// A thread of a group, and the size of the group.
struct ThreadGroup {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

// The LL messages of a step, or the copies, that a thread helps to transfer: first, first + step, ...; `threads`: those
// of each.
struct MessagePart {
  std::uint32_t first = 0;
  std::uint32_t step = 1;
  ThreadGroup threads;

  TUTTI_HOST_DEVICE bool leads() const { return threads.index == 0; }
};

struct alignas(16) Pack {
  std::uint64_t halves[2];
};
inline constexpr std::uint32_t kPackBytes = sizeof(Pack);
struct alignas(16) WordPack {  // A pack of elements of up to 32 bits.
  std::uint32_t words[4];
};

// Largest power of two, up to 16, modulo which all operand addresses are congruent.
TUTTI_HOST_DEVICE inline std::uint32_t common_alignment(const FoldOperands& operands) {
  if (operands.aligned) return kPackBytes;
  const auto first = reinterpret_cast<std::uintptr_t>(operands.sources[0]);
  std::uintptr_t differs = kPackBytes;
  TUTTI_ROLLED
  for (std::uint32_t k = 1; k < operands.source_count; ++k)
    differs |= reinterpret_cast<std::uintptr_t>(operands.sources[k]) ^ first;
  TUTTI_ROLLED
  for (std::uint32_t k = 0; k < operands.target_count; ++k)
    differs |= reinterpret_cast<std::uintptr_t>(operands.targets[k]) ^ first;
  return static_cast<std::uint32_t>(differs & (~differs + 1));
}

// Bytes before the first boundary of `alignment`; at most `bytes`.
TUTTI_HOST_DEVICE inline std::uint64_t head_before(const FoldOperands& operands, std::uint32_t alignment,
                                                   std::uint64_t bytes) {
  if (operands.aligned) return 0;
  const std::uint64_t head = (0 - reinterpret_cast<std::uintptr_t>(operands.sources[0])) & (alignment - 1);
  return head < bytes ? head : bytes;
}

// Bytes before the first pack. All bytes if the operands are not congruent modulo a pack.
TUTTI_HOST_DEVICE inline std::uint64_t pack_head(const FoldOperands& operands, std::uint64_t bytes) {
  return common_alignment(operands) == kPackBytes ? head_before(operands, kPackBytes, bytes) : bytes;
}

// True if no byte is left for a thread: each has a pack at most, and the first ones fold the elements behind the packs.
TUTTI_HOST_DEVICE inline bool is_idle(const FoldOperands& operands, std::uint64_t bytes, ThreadGroup threads) {
  return operands.aligned && threads.index >= kPackBytes && std::uint64_t{threads.index} * kPackBytes >= bytes;
}

template <typename Unit>
TUTTI_HOST_DEVICE Unit load_unit(const std::byte* from) {
  Unit unit;
  std::memcpy(&unit, __builtin_assume_aligned(from, alignof(Unit)), sizeof unit);
  return unit;
}
template <typename Unit>
TUTTI_HOST_DEVICE void store_unit(std::byte* to, const Unit& unit) {
  std::memcpy(__builtin_assume_aligned(to, alignof(Unit)), &unit, sizeof unit);
}

}  // namespace tutti
