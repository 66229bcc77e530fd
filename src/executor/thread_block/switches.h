// Steps by switches: sums over all ranks, loaded from a multicast address, and stores to all ranks at another. Devices
// before sm_90 and hosts have no such instructions, and never run plans that need them; see DeviceTraits::multicast.
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

// Sources and targets of a step. load() and store() transfer the pack at an offset, of which at least one byte and at
// most `bytes` belong to the operand. finish() completes a pack that was loaded.

template <typename T>
struct SumOfAllRanks {
  const std::byte* from;
  std::uint32_t divisor;

  TUTTI_HOST_DEVICE Pack load(std::uint64_t offset, std::uint64_t) const { return multimem_sum<T>(from + offset); }
  TUTTI_HOST_DEVICE Pack finish(const Pack& pack) const { return divisor == 1 ? pack : divided<T>(pack, divisor); }
};

struct AllRanks {
  std::byte* to;

  TUTTI_HOST_DEVICE void store(std::uint64_t offset, const Pack& pack, std::uint64_t) const {
    multimem_store(to + offset, pack);
  }
};

// Memory of this rank. Its address and its length are multiples of a unit.
template <typename Unit>
struct OwnMemory {
  static constexpr std::uint32_t kUnits = kPackBytes / sizeof(Unit);
  std::byte* at;

  TUTTI_HOST_DEVICE bool whole(std::uint64_t bytes) const {
    return bytes >= kPackBytes && reinterpret_cast<std::uintptr_t>(at) % kPackBytes == 0;
  }
  TUTTI_HOST_DEVICE Pack load(std::uint64_t offset, std::uint64_t bytes) const {
    if (whole(bytes)) return load_unit<Pack>(at + offset);
    Unit units[kUnits] = {};
    for (std::uint32_t i = 0; i < kUnits; ++i)
      if (i * sizeof(Unit) < bytes) units[i] = load_unit<Unit>(at + offset + i * sizeof(Unit));
    Pack pack;
    std::memcpy(&pack, units, sizeof pack);
    return pack;
  }
  TUTTI_HOST_DEVICE Pack finish(const Pack& pack) const { return pack; }
  TUTTI_HOST_DEVICE void store(std::uint64_t offset, const Pack& pack, std::uint64_t bytes) const {
    if (whole(bytes)) return store_unit(at + offset, pack);
    Unit units[kUnits];
    std::memcpy(units, &pack, sizeof pack);
    for (std::uint32_t i = 0; i < kUnits; ++i)
      if (i * sizeof(Unit) < bytes) store_unit(at + offset + i * sizeof(Unit), units[i]);
  }
};

// Accesses whole packs of the staging ring: its parts begin at multiples of a pack, and none shares its last pack with
// another. Not inlined, like the folds.
template <typename From, typename To>
TUTTI_HOST_DEVICE [[gnu::noinline]] void transfer_by_switches(From from, To to, std::uint64_t bytes,
                                                              ThreadGroup threads) {
  constexpr std::uint32_t kInFlight = 4;
  const std::uint64_t end = (bytes + kPackBytes - 1) / kPackBytes * kPackBytes;
  const std::uint64_t stride = std::uint64_t{threads.count} * kPackBytes;
  multimem_fence();
  TUTTI_ROLLED
  for (std::uint64_t first = std::uint64_t{threads.index} * kPackBytes; first < end; first += kInFlight * stride) {
    Pack packs[kInFlight];
    for (std::uint32_t n = 0; n < kInFlight; ++n) {
      const std::uint64_t at = first + n * stride;
      if (at < end) packs[n] = from.load(at, bytes - at);
    }
    for (std::uint32_t n = 0; n < kInFlight; ++n) {
      const std::uint64_t at = first + n * stride;
      if (at < end) to.store(at, from.finish(packs[n]), bytes - at);
    }
  }
  multimem_fence();
}

template <typename T>
TUTTI_HOST_DEVICE void sum_by_switches(const FoldOperands& operands, std::uint32_t divisor, ThreadGroup threads) {
  const SumOfAllRanks<T> sums = {operands.sources[0], divisor};
  const std::uint64_t bytes = operands.count * sizeof(T);
  std::byte* to = operands.targets[0];
  if (operands.to_all) return transfer_by_switches(sums, AllRanks{to}, bytes, threads);
  transfer_by_switches(sums, OwnMemory<Bits<T>>{to}, bytes, threads);
}

template <typename Unit>
TUTTI_HOST_DEVICE void store_by_switches(const FoldOperands& operands, std::uint64_t bytes, ThreadGroup threads) {
  const OwnMemory<Unit> own = {const_cast<std::byte*>(operands.sources[0])};
  transfer_by_switches(own, AllRanks{operands.targets[0]}, bytes, threads);
}

// A step with one source and one target. Sums are for pairs of types and reductions that switches_add().
TUTTI_HOST_DEVICE inline void thread_block_switch(const FoldTask& task, FoldOperands operands, ThreadGroup threads) {
  if (!operands.from_all) {
    const std::uint64_t bytes = operands.count * size_of(task.type);
    const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(operands.sources[0]) | bytes;
    if (bits % 8 == 0) return store_by_switches<std::uint64_t>(operands, bytes, threads);
    if (bits % 4 == 0) return store_by_switches<std::uint32_t>(operands, bytes, threads);
    if (bits % 2 == 0) return store_by_switches<std::uint16_t>(operands, bytes, threads);
    return store_by_switches<std::uint8_t>(operands, bytes, threads);
  }
  const FoldForm form = form_of(task.type, task.reduction);
  const std::uint32_t divisor = task.reduction == Reduction::avg ? task.ranks : 1;
  operands.count *= form.parts;
  switch (form.type) {
    case DataType::float16: return sum_by_switches<Float16>(operands, divisor, threads);
    case DataType::bfloat16: return sum_by_switches<BFloat16>(operands, divisor, threads);
    case DataType::float32: return sum_by_switches<float>(operands, divisor, threads);
    case DataType::float64: return sum_by_switches<double>(operands, divisor, threads);
    default: return;
  }
}

}  // namespace tutti
