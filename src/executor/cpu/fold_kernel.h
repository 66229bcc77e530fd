// The CPU fold (reduce and copy) in GNU vectors, compiled once per instruction set. An Isa (src/base/vector_*.h)
// provides:
//   kBytes                                          the register width
//   widened<T, kLanes>(bits), narrowed<T, kLanes>   conversions of narrow floats
//   stream(register, to), fence()                   non-temporal stores
//   prepare(to)                                     prefetch for writing
#pragma once

#include <bit>

#include "src/executor/cpu/fold.h"
#include "src/executor/cpu/fold_lines.h"
#include "src/executor/cpu/fold_vector.h"

namespace tutti {

inline constexpr unsigned kUnroll = 4;                // Registers per operand in flight.
inline constexpr std::uint64_t kCopiedBytes = 16384;  // Bytes per memcpy() if there are several targets.

// Operand addresses of a fold. With compile-time counts (not 0) they stay in registers. Otherwise they are reloaded
// from FoldArguments after every store, since the store might alias them.
template <class Isa, unsigned kSources, unsigned kTargets>
struct Operands {
  explicit Operands(const FoldArguments& a) {
    for (unsigned i = 0; i < kSources; ++i) sources[i] = a.sources[i];
    for (unsigned i = 0; i < kTargets; ++i) targets[i] = a.targets[i];
  }
  static constexpr unsigned source_count = kSources;
  static constexpr unsigned target_count = kTargets;
  static constexpr std::uint64_t streamed = 0;
  const std::byte* sources[kSources];
  std::byte* targets[kTargets];
};
template <class Isa>
struct Operands<Isa, 0, 0> {
  explicit Operands(const FoldArguments& a)
      : source_count(a.source_count), target_count(a.target_count), sources(a.sources), targets(a.targets) {}
  std::uint32_t source_count, target_count;
  const std::byte* const* sources;
  std::byte* const* targets;
  std::uint64_t streamed = 0;
};

template <class Isa, typename T, Reduction kReduction>
class Kernel {
 public:
  // Not inlined, so that the caller need not save registers.
  template <unsigned kSources, unsigned kTargets>
  [[gnu::noinline]] static void run(const FoldArguments& arguments, std::uint64_t count) {
    std::uint64_t i = 0;
    if (count >= kBatch) i = run_batches<kSources, kTargets>(arguments, count);
    Kernel(arguments).template finish<kLanes>(Operands<Isa, kSources, kTargets>(arguments), i, count);
  }

 private:
  // Lanes are sized by the widest intermediate type of an element.
  static constexpr bool kOrders = kReduction == Reduction::min || kReduction == Reduction::max;
  static constexpr bool kDivides = kReduction == Reduction::avg;
  static constexpr bool kAddsInFloat = is_narrow_float<T> && !kOrders;
  static constexpr bool kDividesIntegers = kDivides && !Format<T>::is_float;
  static constexpr unsigned kLaneBytes = kAddsInFloat       ? sizeof(float)
                                         : kDividesIntegers ? (sizeof(T) < 4 ? sizeof(float) : sizeof(double))
                                                            : sizeof(T);
  static constexpr unsigned kLanes = Isa::kBytes / kLaneBytes;
  // Elements of an unrolled iteration.
  static constexpr std::uint64_t kBatch = std::uint64_t{kLanes} * kUnroll;

  explicit Kernel(const FoldArguments& arguments) : arguments_(arguments) {
    if constexpr (kReduction != Reduction::pre_mul_sum) {
      return;
    } else if constexpr (requires { factor_.imaginary; }) {
      using Part = decltype(factor_.real);
      factor_ = {static_cast<Part>(arguments.scale), static_cast<Part>(arguments.imaginary_scale)};
    } else if constexpr (Format<T>::is_float) {
      factor_ = static_cast<Accumulator<T>>(arguments.scale);
    } else {
      factor_ = static_cast<Accumulator<T>>(arguments.integer_scale);
    }
  }

  // Processes whole batches and returns the number of elements done. Not inlined, so that small folds do not pay for
  // its registers.
  template <unsigned kSources, unsigned kTargets>
  [[gnu::noinline]] static std::uint64_t run_batches(const FoldArguments& arguments, std::uint64_t count) {
    const Kernel kernel(arguments);
    Operands<Isa, kSources, kTargets> operands(arguments);
    std::uint64_t i = 0;
    if constexpr (kTargets == 0) {
      if (arguments.streamed_targets != 0) i = kernel.start_streaming(operands, count);
    }
    if (arguments.cache_policy.fetches_targets && count * sizeof(T) >= kPreparedBytes) {
      constexpr std::uint64_t kAhead = kAheadBytes / sizeof(T);
      const std::uint64_t fresh = fresh_targets(operands);
      for (; count - i >= kAhead + kBatch; i += kBatch) {
        prepare(operands, fresh, (i + kAhead) * sizeof(T));
        kernel.template fold<kLanes, kUnroll>(operands, i);
      }
    }
    if (arguments.fetched_sources != 0) {
      for (; count - i >= kBatch; i += kBatch) {
        fetch(operands, arguments.fetched_sources, i * sizeof(T) + kFetchedAheadBytes);
        kernel.template fold<kLanes, kUnroll>(operands, i);
      }
    }
    for (; count - i >= kBatch; i += kBatch) kernel.template fold<kLanes, kUnroll>(operands, i);
    if (operands.streamed != 0) Isa::fence();
    return i;
  }

  // Bit mask of the targets that are neither read first nor streamed.
  template <class Operands>
  TUTTI_KERNEL static std::uint64_t fresh_targets(const Operands& operands) {
    std::uint64_t fresh = 0;
    for (unsigned t = 0; t < operands.target_count && t < 64; ++t) {
      bool is_source = false;
      for (unsigned s = 0; s < operands.source_count; ++s)
        is_source = is_source || operands.sources[s] == operands.targets[t];
      if (!is_source) fresh |= std::uint64_t{1} << t;
    }
    return fresh & ~operands.streamed;
  }

  // Prefetches one batch of the sources for reading.
  template <class Operands>
  TUTTI_KERNEL static void fetch(const Operands& operands, std::uint64_t fetched, std::uint64_t at) {
    for (unsigned s = 0; s < operands.source_count && s < 64; ++s) {
      if ((fetched >> s & 1) == 0) continue;
      for (std::uint64_t line = 0; line < kBatch * sizeof(T); line += kCacheLineBytes)
        __builtin_prefetch(operands.sources[s] + at + line);
    }
  }

  // Prefetches one batch of the targets for writing.
  template <class Operands>
  TUTTI_KERNEL static void prepare(const Operands& operands, std::uint64_t fresh, std::uint64_t at) {
    for (unsigned t = 0; t < operands.target_count && t < 64; ++t) {
      if ((fresh >> t & 1) == 0) continue;
      for (std::uint64_t line = 0; line < kBatch * sizeof(T); line += kCacheLineBytes)
        Isa::prepare(operands.targets[t] + at + line);
    }
  }

  // Folds elements [i, i + kCount * kWidth). All reads precede all writes, since targets may be in place.
  template <unsigned kWidth, unsigned kCount, class Operands>
  TUTTI_KERNEL void fold(const Operands& operands, std::uint64_t i) const {
    using Arithmetic = VectorArithmetic<Isa, T, kReduction, kWidth>;
    typename Arithmetic::Value values[kCount];
#pragma GCC unroll 4
    for (unsigned k = 0; k < kCount; ++k) values[k] = read<Arithmetic, kWidth>(operands, 0, i + k * kWidth);
    for (unsigned s = 1; s < operands.source_count; ++s) {
#pragma GCC unroll 4
      for (unsigned k = 0; k < kCount; ++k) {
        values[k] = Arithmetic::combine(values[k], read<Arithmetic, kWidth>(operands, s, i + k * kWidth));
      }
    }
    typename Arithmetic::Loaded results[kCount];
#pragma GCC unroll 4
    for (unsigned k = 0; k < kCount; ++k) {
      if constexpr (kDivides) values[k] = Arithmetic::divide(values[k], arguments_.ranks);
      results[k] = Arithmetic::write(values[k]);
    }
    for (unsigned t = 0; t < operands.target_count; ++t) {
      std::byte* target = operands.targets[t] + i * sizeof(T);
      if (kCount > 1 && t < 64 && (operands.streamed >> t & 1) != 0) {
#pragma GCC unroll 4
        for (unsigned k = 0; k < kCount; ++k) Isa::stream(results[k], target + k * sizeof results[k]);
      } else {
#pragma GCC unroll 4
        for (unsigned k = 0; k < kCount; ++k)
          std::memcpy(target + k * sizeof results[k], &results[k], sizeof results[k]);
      }
    }
  }

  template <class Arithmetic, unsigned kWidth, class Operands>
  TUTTI_KERNEL auto read(const Operands& operands, unsigned s, std::uint64_t i) const {
    using Part = typename Arithmetic::Part;
    const auto bits = load<Bits<Part>, kWidth * sizeof(T) / sizeof(Part)>(operands.sources[s] + i * sizeof(T));
    const auto value = Arithmetic::read(bits);
    if constexpr (kReduction == Reduction::pre_mul_sum) {
      return s == arguments_.own ? Arithmetic::multiply(value, Arithmetic::repeated(factor_)) : value;
    } else {
      return value;
    }
  }

  // Processes the remainder: whole registers, then halves, quarters and so on.
  template <unsigned kWidth, class Operands>
  TUTTI_KERNEL void finish(const Operands& operands, std::uint64_t i, std::uint64_t count) const {
    for (; count - i >= kWidth; i += kWidth) {
      fold<kWidth, 1>(operands, i);
      if (kWidth < kLanes) {
        i += kWidth;
        break;
      }
    }
    if constexpr (kWidth > 1) finish<kWidth / 2>(operands, i, count);
  }

  // Processes elements up to the first line boundary of the streamed targets. Disables streaming if the targets are not
  // congruent modulo a line. Returns the number of elements done.
  std::uint64_t start_streaming(Operands<Isa, 0, 0>& operands, std::uint64_t count) const {
    std::uint64_t behind = 0;
    for (unsigned t = 0; t < operands.target_count && t < 64; ++t) {
      if ((arguments_.streamed_targets >> t & 1) == 0) continue;
      const std::uint64_t missing = -reinterpret_cast<std::uintptr_t>(operands.targets[t]) % kCacheLineBytes;
      if (missing % sizeof(T) != 0 || (operands.streamed != 0 && missing != behind)) {
        operands.streamed = 0;
        return 0;
      }
      behind = missing;
      operands.streamed |= std::uint64_t{1} << t;
    }
    const std::uint64_t head = behind / sizeof(T) < count ? behind / sizeof(T) : count;
    finish<kLanes>(operands, 0, head);
    return head;
  }

  const FoldArguments& arguments_;
  Accumulator<T> factor_{};
};

inline bool stores_back(const FoldArguments& arguments) {
  for (std::uint32_t t = 0; t < arguments.target_count; ++t) {
    if (arguments.targets[t] == arguments.sources[0]) return true;
  }
  return false;
}

// Copies to several targets in parts that fit the L1 cache.
inline void copy_by_libc(const FoldArguments& arguments, std::uint64_t bytes) {
  const std::uint64_t max = arguments.target_count == 1 ? bytes : kCopiedBytes;
  for (std::uint64_t begin = 0; begin < bytes; begin += max) {
    const std::uint64_t length = bytes - begin < max ? bytes - begin : max;
    for (std::uint32_t t = 0; t < arguments.target_count; ++t)
      std::memcpy(arguments.targets[t] + begin, arguments.sources[0] + begin, length);
  }
}

template <class Isa>
void copy_bytes(const FoldArguments& arguments, std::uint64_t bytes) {
  using Bytes = Kernel<Isa, std::uint8_t, Reduction::sum>;
  if (bytes >= arguments.cache_policy.libc_copies_bytes && arguments.streamed_targets == 0 && !stores_back(arguments))
    return copy_by_libc(arguments, bytes);
  if (arguments.streamed_targets == 0 && arguments.target_count == 1)
    return Bytes::template run<1, 1>(arguments, bytes);
  if (arguments.streamed_targets == 0 && arguments.target_count == 2)
    return Bytes::template run<1, 2>(arguments, bytes);
  Bytes::template run<0, 0>(arguments, bytes);
}

// Integer type with the same fold as T. Signedness matters only for min, max and avg.
template <typename T, Reduction kReduction>
using Representative = std::conditional_t<Format<T>::is_float || kReduction == Reduction::min ||
                                              kReduction == Reduction::max || kReduction == Reduction::avg,
                                          T, Bits<T>>;

// Types with kernels specialised for two sources: sums of floats and of std::uint32_t (counters).
template <typename T, Reduction kReduction>
inline constexpr bool is_frequent = kReduction == Reduction::sum &&
                                    (std::is_same_v<T, std::uint32_t> || (Format<T>::is_float && sizeof(T) > 1));

// Folds elements that consist of kParts numbers of type T.
template <class Isa, typename T, Reduction kReduction, unsigned kParts = 1>
void fold(const FoldArguments& a) {
  // Reduce to simpler cases: partial averages and unscaled pre_mul_sums are sums; sums of one source are copies.
  if constexpr (kReduction == Reduction::avg) {
    if (!a.complete || a.ranks == 1) {
      return fold<Isa, Representative<T, Reduction::sum>, Reduction::sum, kParts>(a);
    }
  } else if constexpr (kReduction == Reduction::pre_mul_sum) {
    using Part = typename VectorArithmetic<Isa, T, kReduction, 1>::Part;
    if (a.own == FoldArguments::kNone) return fold<Isa, Part, Reduction::sum, sizeof(T) / sizeof(Part)>(a);
  } else {
    if (a.source_count == 1) return copy_bytes<Isa>(a, a.count * kParts * sizeof(T));
  }
  using FoldKernel = Kernel<Isa, T, kReduction>;
  if constexpr (is_frequent<T, kReduction>) {
    if (a.source_count == 2 && a.streamed_targets == 0) {
      if (a.target_count == 1) return FoldKernel::template run<2, 1>(a, a.count * kParts);
      if (a.target_count == 2) return FoldKernel::template run<2, 2>(a, a.count * kParts);
      if (a.target_count == 3) return FoldKernel::template run<2, 3>(a, a.count * kParts);
    }
  }
  FoldKernel::template run<0, 0>(a, a.count * kParts);
}

template <class Isa>
FoldFunction find_bitwise_fold(const FoldForm& form) {
  const auto of_parts = [&]<Reduction kReduction>() {
    using Byte = std::uint8_t;
    static constexpr FoldFunction functions[] = {fold<Isa, Byte, kReduction, 1>, fold<Isa, Byte, kReduction, 2>,
                                                 fold<Isa, Byte, kReduction, 4>, fold<Isa, Byte, kReduction, 8>};
    return functions[std::countr_zero(form.parts)];
  };
  if (form.reduction == Reduction::band) return of_parts.template operator()<Reduction::band>();
  if (form.reduction == Reduction::bor) return of_parts.template operator()<Reduction::bor>();
  return of_parts.template operator()<Reduction::bxor>();
}

// Sums and averages of complex numbers have the form of their parts.
template <class Isa, typename T>
FoldFunction find_complex_fold(const FoldForm& form) {
  if (form.reduction == Reduction::prod) return fold<Isa, Complex<T>, Reduction::prod>;
  if (form.reduction == Reduction::pre_mul_sum) return fold<Isa, Complex<T>, Reduction::pre_mul_sum>;
  return form.reduction == Reduction::avg ? fold<Isa, T, Reduction::avg, 2> : fold<Isa, T, Reduction::sum, 2>;
}

template <class Isa, typename T>
FoldFunction find_simple_fold(Reduction reduction) {
  switch (reduction) {
    case Reduction::prod: return fold<Isa, Representative<T, Reduction::prod>, Reduction::prod>;
    case Reduction::min: return fold<Isa, T, Reduction::min>;
    case Reduction::max: return fold<Isa, T, Reduction::max>;
    case Reduction::avg: return fold<Isa, T, Reduction::avg>;
    case Reduction::pre_mul_sum: return fold<Isa, Representative<T, Reduction::pre_mul_sum>, Reduction::pre_mul_sum>;
    default: return fold<Isa, Representative<T, Reduction::sum>, Reduction::sum>;
  }
}

template <class Isa>
FoldFunction find_fold_in(DataType type, Reduction reduction) {
  const FoldForm form = form_of(type, reduction);
  if (is_bitwise(form.reduction)) return find_bitwise_fold<Isa>(form);
  return visit(type == DataType::boolean ? form.type : type, [&]<typename T>(Type<T>) -> FoldFunction {
    if constexpr (std::is_same_v<T, Bool>) return nullptr;
    else if constexpr (std::is_same_v<T, Complex<float>>) return find_complex_fold<Isa, float>(form);
    else if constexpr (std::is_same_v<T, Complex<double>>) return find_complex_fold<Isa, double>(form);
    else return find_simple_fold<Isa, T>(form.reduction);
  });
}

}  // namespace tutti
