// Arithmetic of reductions. Lanes determines the number of elements at a time: Scalar for devices, or a SIMD register
// of a CPU.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/base/numeric.h"

namespace tutti {

// The simplest fold with the same result: an element of the original type is `parts` elements of `type`.
struct FoldForm {
  DataType type;
  Reduction reduction;
  std::uint32_t parts;
};

// Or and and of bytes 0 and 1 are their maximum and minimum.
constexpr FoldForm form_of(DataType type, Reduction reduction) {
  if (type == DataType::boolean) {
    if (reduction == Reduction::bxor) return {DataType::uint8, Reduction::bxor, 1};
    const bool ands = reduction == Reduction::prod || reduction == Reduction::min || reduction == Reduction::band;
    return {DataType::uint8, ands ? Reduction::min : Reduction::max, 1};
  }
  if (is_bitwise(reduction)) return {DataType::uint8, reduction, static_cast<std::uint32_t>(size_of(type))};
  if (is_complex(type) && (reduction == Reduction::sum || reduction == Reduction::avg))
    return {type == DataType::complex64 ? DataType::float32 : DataType::float64, reduction, 2};
  return {type, reduction, 1};
}

// True if GPUs have a kernel. False for products and scaled sums of complex numbers, which would need kernels of their
// own.
constexpr bool thread_block_supports(DataType type, Reduction reduction) {
  return supports(type, reduction) && !is_complex(form_of(type, reduction).type);
}

// True if switches add the type. An average is a sum that is rounded, and divided when it is stored: for bfloat16 its
// last bit may differ from that of a fold, and float16 has no range for it.
constexpr bool switches_add(DataType type, Reduction reduction) {
  const DataType element = form_of(type, reduction).type;
  const bool wide = element == DataType::bfloat16 || element == DataType::float32 || element == DataType::float64;
  return reduction == Reduction::sum ? wide || element == DataType::float16 : reduction == Reduction::avg && wide;
}

template <typename T>
using Signed = std::make_signed_t<Bits<T>>;

// Accumulator type of sums and products. Integers wrap, so signedness is irrelevant.
template <typename T>
struct AccumulatorOf {
  using type = std::conditional_t<is_narrow_float<T>, float, std::conditional_t<Format<T>::is_float, T, Bits<T>>>;
};
template <typename T>
struct AccumulatorOf<Complex<T>> {
  using type = Complex<T>;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::type;

// One element at a time.
struct Scalar {
  template <typename U>
  using Of = U;

  template <typename To, typename From>
  TUTTI_NUMERIC static To convert(From x) {
    return static_cast<To>(x);
  }
  template <typename T>
  TUTTI_NUMERIC static float widened(Bits<T> bits) {
    return widen<T, float>(std::uint32_t{bits});
  }
  template <typename T>
  TUTTI_NUMERIC static Bits<T> narrowed(float value) {
    return static_cast<Bits<T>>(narrow<T, std::uint32_t>(value));
  }
};

// Sum, product, average and scaled sum. Elements are converted to accumulators when read, and back when written.
template <typename T, Reduction kReduction, typename Lanes>
struct Sums {
  using Loaded = typename Lanes::template Of<Bits<T>>;
  using Value = typename Lanes::template Of<Accumulator<T>>;

  TUTTI_NUMERIC static Value read(Loaded bits) {
    if constexpr (is_narrow_float<T>) {
      return Lanes::template widened<T>(bits);
    } else {
      return __builtin_bit_cast(Value, bits);
    }
  }

  TUTTI_NUMERIC static Loaded write(Value value) {
    if constexpr (is_narrow_float<T>) {
      return Lanes::template narrowed<T>(value);
    } else if constexpr (Format<T>::is_float) {
      const Loaded bits = __builtin_bit_cast(Loaded, value);
      return value == value ? bits : Loaded{} + static_cast<Bits<T>>(Format<T>::nan);
    } else {
      return value;
    }
  }

  TUTTI_NUMERIC static Value combine(Value a, Value b) {
    return kReduction == Reduction::prod ? multiply(a, b) : static_cast<Value>(a + b);
  }

  TUTTI_NUMERIC static Value multiply(Value a, Value b) {
    if constexpr (std::is_same_v<Value, std::uint16_t>) {
      return static_cast<Value>(std::uint32_t{a} * b);  // Promotion to int could overflow.
    } else {
      return static_cast<Value>(a * b);
    }
  }

  TUTTI_NUMERIC static Value divide(Value sum, std::uint32_t divisor) {
    if constexpr (Format<T>::is_float) {
      return sum / static_cast<Accumulator<T>>(divisor);
    } else if constexpr (sizeof(T) == 8) {
      using Quotient = typename Lanes::template Of<T>;
      return __builtin_bit_cast(Value, __builtin_bit_cast(Quotient, sum) / static_cast<T>(divisor));
    } else {
      return divide_by_inverse(sum, divisor);
    }
  }

 private:
  // SIMD registers have no integer division. Multiply by the inverse after moving the dividend away from zero by 1/2,
  // and truncate. The shift keeps the quotient 1/(2 * divisor) away from the next integers. The distance exceeds the
  // rounding error, so the result is exact.
  TUTTI_NUMERIC static Value divide_by_inverse(Value sum, std::uint32_t divisor) {
    using Real = std::conditional_t<sizeof(T) < 4, float, double>;
    using Reals = typename Lanes::template Of<Real>;
    using Integers = typename Lanes::template Of<T>;
    const auto x = Lanes::template convert<Real, T>(__builtin_bit_cast(Integers, sum));
    const Reals away = x < Reals{} ? Reals{} - Real(0.5) : Reals{} + Real(0.5);
    const Reals quotient = (x + away) * (Real(1) / static_cast<Real>(divisor));
    return __builtin_bit_cast(Value, Lanes::template convert<T, Real>(quotient));
  }
};

// Minimum and maximum. Elements are mapped to integers of the same order, in which -0 is below +0 and NaN wins. The
// result does not depend on the order of operands.
template <typename T, Reduction kReduction, typename Lanes>
struct Orders {
  using Integer = std::conditional_t<Format<T>::is_float, Signed<T>, T>;
  using Loaded = typename Lanes::template Of<Bits<T>>;
  using Value = typename Lanes::template Of<Integer>;

  TUTTI_NUMERIC static Value read(Loaded bits) {
    const Value value = __builtin_bit_cast(Value, bits);
    if constexpr (Format<T>::is_float) {
      constexpr Integer winner = kReduction == Reduction::min ? Integer(~kMagnitude) : Integer(kMagnitude);
      return is_nan(bits) ? Value{} + winner : flipped(value);
    } else {
      return value;
    }
  }

  TUTTI_NUMERIC static Loaded write(Value value) {
    if constexpr (Format<T>::is_float) {
      const Loaded bits = __builtin_bit_cast(Loaded, flipped(value));
      return is_nan(bits) ? Loaded{} + static_cast<Bits<T>>(Format<T>::nan) : bits;
    } else {
      return __builtin_bit_cast(Loaded, value);
    }
  }

  TUTTI_NUMERIC static Value combine(Value a, Value b) {
    if constexpr (kReduction == Reduction::min) {
      return b < a ? b : a;
    } else {
      return a < b ? b : a;
    }
  }

 private:
  static constexpr Bits<T> kMagnitude = static_cast<Bits<T>>(~Bits<T>{0}) >> 1;

  // Converts sign-magnitude to two's complement and back.
  TUTTI_NUMERIC static Value flipped(Value value) {
    return value < Value{} ? static_cast<Value>(value ^ static_cast<Integer>(kMagnitude)) : value;
  }
  TUTTI_NUMERIC static auto is_nan(Loaded bits) {
    const auto magnitude = __builtin_bit_cast(Value, static_cast<Loaded>(bits & kMagnitude));
    return magnitude > Value{} + static_cast<Integer>(Format<T>::highest);
  }
};

// Bitwise and, or and exclusive or of integers.
template <typename T, Reduction kReduction, typename Lanes>
struct Bitwise {
  using Loaded = typename Lanes::template Of<Bits<T>>;
  using Value = Loaded;

  TUTTI_NUMERIC static Value read(Loaded bits) { return bits; }
  TUTTI_NUMERIC static Loaded write(Value value) { return value; }
  TUTTI_NUMERIC static Value combine(Value a, Value b) {
    if constexpr (kReduction == Reduction::band) {
      return static_cast<Value>(a & b);
    } else if constexpr (kReduction == Reduction::bor) {
      return static_cast<Value>(a | b);
    } else {
      return static_cast<Value>(a ^ b);
    }
  }
};

template <typename T, Reduction kReduction, typename Lanes>
using Arithmetic = std::conditional_t<
    kReduction == Reduction::min || kReduction == Reduction::max, Orders<T, kReduction, Lanes>,
    std::conditional_t<is_bitwise(kReduction), Bitwise<T, kReduction, Lanes>, Sums<T, kReduction, Lanes>>>;

}  // namespace tutti
