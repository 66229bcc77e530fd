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

// A transfer. Exactly one address, or both, are multicast addresses. These are multiples of a pack, and whole packs are
// accessed there: in the staging ring no part shares its last pack with another, and of buffers only whole packs are
// transferred.
struct SwitchTransfer {
  const std::byte* from;
  std::byte* to;
  std::uint64_t bytes;
  bool from_all, to_all;
  bool complete;  // avg: divide by the number of ranks.
};

// Not inlined, like the folds.
template <typename From, typename To>
TUTTI_HOST_DEVICE [[gnu::noinline]] void transfer_by_switches(From from, To to, std::uint64_t bytes,
                                                              ThreadGroup threads) {
  constexpr std::uint32_t kInFlight = 4;
  const std::uint64_t end = (bytes + kPackBytes - 1) / kPackBytes * kPackBytes;
  const std::uint64_t stride = std::uint64_t{threads.count} * kPackBytes;
  multimem_fence();
  TUTTI_ROLLED
  for (std::uint64_t first = std::uint64_t{threads.index} * kPackBytes; first < end; first += kInFlight * stride) {
    Pack packs[kInFlight] = {};  // Without a value, packs behind the end would keep that of the last iteration.
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
TUTTI_HOST_DEVICE void sum_by_switches(const SwitchTransfer& all, std::uint32_t divisor, ThreadGroup threads) {
  const SumOfAllRanks<T> sums = {all.from, divisor};
  if (all.to_all) return transfer_by_switches(sums, AllRanks{all.to}, all.bytes, threads);
  transfer_by_switches(sums, OwnMemory<Bits<T>>{all.to}, all.bytes, threads);
}

template <typename Unit>
TUTTI_HOST_DEVICE void store_by_switches(const SwitchTransfer& all, ThreadGroup threads) {
  const OwnMemory<Unit> own = {const_cast<std::byte*>(all.from)};
  transfer_by_switches(own, AllRanks{all.to}, all.bytes, threads);
}

// Sums are for pairs of types and reductions that switches_add().
TUTTI_HOST_DEVICE inline void thread_block_switch(const FoldTask& task, const SwitchTransfer& all,
                                                  ThreadGroup threads) {
  if (!all.from_all) {
    const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(all.from) | all.bytes;
    if (bits % 8 == 0) return store_by_switches<std::uint64_t>(all, threads);
    if (bits % 4 == 0) return store_by_switches<std::uint32_t>(all, threads);
    if (bits % 2 == 0) return store_by_switches<std::uint16_t>(all, threads);
    return store_by_switches<std::uint8_t>(all, threads);
  }
  const std::uint32_t divisor = task.reduction == Reduction::avg && all.complete ? task.ranks : 1;
  switch (form_of(task.type, task.reduction).type) {
    case DataType::float16: return sum_by_switches<Float16>(all, divisor, threads);
    case DataType::bfloat16: return sum_by_switches<BFloat16>(all, divisor, threads);
    case DataType::float32: return sum_by_switches<float>(all, divisor, threads);
    case DataType::float64: return sum_by_switches<double>(all, divisor, threads);
    default: return;
  }
}

}  // namespace tutti
