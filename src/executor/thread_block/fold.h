// The fold of a thread block: each thread folds 16-byte packs, several in flight. Host and device compile this source.
// Results are bit-identical to the CPU's folds.
#pragma once

#include "src/executor/thread_block/copy.h"
#include "src/executor/thread_block/scalar.h"
#include "src/executor/thread_block/switches.h"

namespace tutti {

// Packs in flight per thread, limited by registers, since the next source's packs are loaded at the same time. Every
// instantiation is code for each architecture, so only types and reductions of large messages get more than one.
template <typename T, Reduction kReduction>
constexpr std::uint32_t packs_in_flight() {
  constexpr bool sums = kReduction == Reduction::sum || kReduction == Reduction::pre_mul_sum;
  constexpr bool orders = kReduction == Reduction::min || kReduction == Reduction::max;
  if (sizeof(T) >= 4) return sums ? 4 : orders ? 2 : 1;
  return sums && sizeof(T) == 2 && Format<T>::is_float ? 3 : 1;
}

template <typename T, Reduction kReduction>
class ThreadBlockFold {
 public:
  TUTTI_HOST_DEVICE ThreadBlockFold(const FoldTask& task, const FoldOperands& operands, ThreadGroup threads)
      : operands_(operands), threads_(threads), ranks_(task.ranks) {
    if constexpr (Format<T>::is_float) {
      factor_ = static_cast<Accumulator<T>>(task.scale);
    } else {
      factor_ = static_cast<Accumulator<T>>(task.integer_scale);
    }
  }

  TUTTI_HOST_DEVICE void run() const {
    const std::uint64_t head = operands_.head / sizeof(T);
    const std::uint64_t packs = (operands_.count - head) / kWidth;
    const std::uint64_t begin = head * sizeof(T);
    const std::uint64_t stride = threads_.count;
    std::uint64_t p = threads_.index;
    if constexpr (kInFlight > 1) {
      TUTTI_ROLLED
      for (; p + (kInFlight - 1) * stride < packs; p += kInFlight * stride) fold_units<Wide, kInFlight>(begin, p);
    }
    TUTTI_ROLLED
    for (; p < packs; p += stride) fold_units<Wide, 1>(begin, p);
    const std::uint64_t loose = operands_.count - packs * kWidth;  // Elements before and after the packs.
    TUTTI_ROLLED
    for (std::uint64_t i = threads_.index; i < loose; i += stride)
      fold_units<Bits<T>, 1>(0, i < head ? i : i + packs * kWidth);
  }

 private:
  using Element = Arithmetic<T, kReduction, KernelScalar>;
  using Value = typename Element::Value;
  using Wide = std::conditional_t<sizeof(T) == 8, Pack, WordPack>;  // Registers need not be split or joined.
  static constexpr std::uint32_t kWidth = kPackBytes / sizeof(T);
  static constexpr std::uint32_t kInFlight = packs_in_flight<T, kReduction>();

  TUTTI_HOST_DEVICE Value read(std::uint32_t source, Bits<T> bits) const {
    Value value = Element::read(bits);
    if constexpr (kReduction == Reduction::pre_mul_sum) {
      if (operands_.scaled[source] != 0) value = Element::multiply(value, factor_);
    }
    return value;
  }

  TUTTI_HOST_DEVICE Bits<T> write(Value value) const {
    if constexpr (kReduction == Reduction::avg) value = Element::divide(value, ranks_);
    // Averages over 2^k ranks multiply by the inverse, which is as exact as division. For plain sums the factor is 1.
    if constexpr (kReduction == Reduction::sum && Format<T>::is_float) value = Element::multiply(value, factor_);
    return Element::write(value);
  }

  // Loads units u, u + thread_count, ... of those that begin at `begin`.
  template <typename Unit, std::uint32_t kCount>
  TUTTI_HOST_DEVICE void load(std::uint32_t source, std::uint64_t begin, std::uint64_t u, Bits<T>* bits) const {
    const std::byte* from = operands_.sources[source] + begin + u * sizeof(Unit);
    for (std::uint32_t n = 0; n < kCount; ++n) {
      const Unit unit = load_unit<Unit>(from + std::uint64_t{n} * threads_.count * sizeof(Unit));
      std::memcpy(bits + n * (sizeof(Unit) / sizeof(T)), &unit, sizeof unit);
    }
  }

  template <std::uint32_t kElements>
  TUTTI_HOST_DEVICE void combine(Value* values, std::uint32_t source, const Bits<T>* bits) const {
    for (std::uint32_t i = 0; i < kElements; ++i) values[i] = Element::combine(values[i], read(source, bits[i]));
  }

  // All reads precede all writes, since targets may be in place. Each source is loaded while the preceding one is
  // added. Two sources per iteration, so that no register is copied to another.
  template <typename Unit, std::uint32_t kCount>
  TUTTI_HOST_DEVICE void fold_units(std::uint64_t begin, std::uint64_t u) const {
    constexpr std::uint32_t kElements = kCount * (sizeof(Unit) / sizeof(T));
    const std::uint32_t sources = operands_.source_count;
    Bits<T> bits[kElements];
    Bits<T> ahead[kElements] = {};
    Value values[kElements];
    load<Unit, kCount>(0, begin, u, bits);
    if (sources > 1) load<Unit, kCount>(1, begin, u, ahead);
    for (std::uint32_t i = 0; i < kElements; ++i) values[i] = read(0, bits[i]);
    TUTTI_ROLLED
    for (std::uint32_t k = 1; k < sources; k += 2) {
      const bool more = k + 1 < sources;
      if (more) load<Unit, kCount>(k + 1, begin, u, bits);
      combine<kElements>(values, k, ahead);
      if (!more) break;
      if (k + 2 < sources) load<Unit, kCount>(k + 2, begin, u, ahead);
      combine<kElements>(values, k + 1, bits);
    }
    for (std::uint32_t i = 0; i < kElements; ++i) bits[i] = write(values[i]);
    TUTTI_ROLLED
    for (std::uint32_t k = 0; k < operands_.target_count; ++k) {
      std::byte* to = operands_.targets[k] + begin + u * sizeof(Unit);
      for (std::uint32_t n = 0; n < kCount; ++n) {
        Unit unit;
        std::memcpy(&unit, bits + n * (sizeof(Unit) / sizeof(T)), sizeof unit);
        store_unit(to + std::uint64_t{n} * threads_.count * sizeof(Unit), unit);
      }
    }
  }

  const FoldOperands operands_;
  const ThreadGroup threads_;
  const std::uint32_t ranks_;
  Accumulator<T> factor_{};
};

// One fold of one type and reduction. Not inlined, so that the interpreter does not need the registers of every type.
template <typename T, Reduction kReduction>
TUTTI_HOST_DEVICE [[gnu::noinline]] void fold_as(const FoldTask& task, const FoldOperands& operands,
                                                 ThreadGroup threads) {
  ThreadBlockFold<T, kReduction>(task, operands, threads).run();
}

// Sums and products of integers wrap, so signedness is irrelevant.
template <typename T>
using Wrapping = std::conditional_t<Format<T>::is_float, T, Accumulator<T>>;

TUTTI_HOST_DEVICE inline void bitwise_fold(Reduction reduction, const FoldOperands& operands, ThreadGroup threads) {
  using Byte = std::uint8_t;
  if (reduction == Reduction::band) return fold_as<Byte, Reduction::band>({}, operands, threads);
  if (reduction == Reduction::bor) return fold_as<Byte, Reduction::bor>({}, operands, threads);
  return fold_as<Byte, Reduction::bxor>({}, operands, threads);
}

template <typename T>
TUTTI_HOST_DEVICE inline void fold_of(const FoldTask& task, const FoldOperands& operands, ThreadGroup threads) {
  switch (task.reduction) {
    case Reduction::sum: return fold_as<Wrapping<T>, Reduction::sum>(task, operands, threads);
    case Reduction::prod: return fold_as<Wrapping<T>, Reduction::prod>(task, operands, threads);
    case Reduction::min: return fold_as<T, Reduction::min>(task, operands, threads);
    case Reduction::max: return fold_as<T, Reduction::max>(task, operands, threads);
    case Reduction::avg: return fold_as<T, Reduction::avg>(task, operands, threads);
    case Reduction::pre_mul_sum: return fold_as<Wrapping<T>, Reduction::pre_mul_sum>(task, operands, threads);
    case Reduction::band:
    case Reduction::bor:
    case Reduction::bxor: return;  // See bitwise_fold().
  }
}

// True if the fold divides its result: an average of all contributions.
TUTTI_HOST_DEVICE inline bool divides(const FoldTask& task, bool complete) {
  return task.reduction == Reduction::avg && complete && task.ranks > 1;
}

// Replaces other reductions by an equivalent sum, which is the fastest fold.
TUTTI_HOST_DEVICE inline FoldTask simplest_equivalent(FoldTask task, bool complete) {
  if (task.reduction == Reduction::sum) task.scale = 1;
  if (task.reduction != Reduction::avg) return task;
  const bool divided = divides(task, complete);
  const bool is_float = task.type >= DataType::float16;
  if (divided && (!is_float || (task.ranks & (task.ranks - 1)) != 0)) return task;
  task.reduction = Reduction::sum;
  task.scale = divided ? 1.0 / task.ranks : 1;
  return task;
}

// Computes ((s0 op s1) op s2) ... for every target, as FoldFunction in cpu/fold.h. Dispatches on type and reduction,
// once per step.
TUTTI_HOST_DEVICE inline void thread_block_fold(FoldTask task, FoldOperands operands, ThreadGroup threads) {
  if (operands.from_all || operands.to_all) {
    const std::uint64_t bytes = operands.count * size_of(task.type);
    return thread_block_switch(
        task, {operands.sources[0], operands.targets[0], bytes, operands.from_all, operands.to_all, operands.complete},
        threads);
  }
  const FoldForm form = form_of(task.type, task.reduction);
  task.type = form.type;
  task.reduction = form.reduction;
  operands.count *= form.parts;
  if (is_idle(operands, operands.count * size_of(task.type), threads)) return;
  const FoldTask plain = simplest_equivalent(task, operands.complete);
  const bool scales = task.reduction == Reduction::pre_mul_sum && operands.scaled[0] != 0;
  if (operands.source_count == 1 && !divides(task, operands.complete) && !scales) {
    return thread_block_copy(operands, operands.count * size_of(task.type), threads);
  }
  operands.head = pack_head(operands, operands.count * size_of(task.type));
  if (is_bitwise(form.reduction)) return bitwise_fold(form.reduction, operands, threads);
  switch (task.type) {
    case DataType::int8: return fold_of<std::int8_t>(plain, operands, threads);
    case DataType::uint8: return fold_of<std::uint8_t>(plain, operands, threads);
    case DataType::int16: return fold_of<std::int16_t>(plain, operands, threads);
    case DataType::uint16: return fold_of<std::uint16_t>(plain, operands, threads);
    case DataType::int32: return fold_of<std::int32_t>(plain, operands, threads);
    case DataType::uint32: return fold_of<std::uint32_t>(plain, operands, threads);
    case DataType::int64: return fold_of<std::int64_t>(plain, operands, threads);
    case DataType::uint64: return fold_of<std::uint64_t>(plain, operands, threads);
    case DataType::float16: return fold_of<Float16>(plain, operands, threads);
    case DataType::bfloat16: return fold_of<BFloat16>(plain, operands, threads);
    case DataType::float32: return fold_of<float>(plain, operands, threads);
    case DataType::float64: return fold_of<double>(plain, operands, threads);
    case DataType::float8_e4m3: return fold_of<Float8E4M3>(plain, operands, threads);
    case DataType::float8_e5m2: return fold_of<Float8E5M2>(plain, operands, threads);
    case DataType::boolean:
    case DataType::complex64:
    case DataType::complex128: return;  // See thread_block_supports().
  }
}

}  // namespace tutti
