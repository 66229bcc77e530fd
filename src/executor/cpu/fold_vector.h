// Vector arithmetic.
#pragma once

#include "src/base/vector.h"
#include "src/executor/numeric_reduce.h"

namespace tutti {

// The Lanes parameter of numeric_reduce.h for kLanes elements at a time, with the Isa's conversions of narrow floats.
template <class Isa, unsigned kLanes>
struct VectorLanes {
  template <typename U>
  using Of = Vector<U, kLanes>;

  template <typename To, typename From>
  TUTTI_KERNEL static Of<To> convert(Of<From> x) {
    return converted<To, From, kLanes>(x);
  }
  template <typename T>
  TUTTI_KERNEL static Of<float> widened(Of<Bits<T>> bits) {
    return Isa::template widened<T, kLanes>(bits);
  }
  template <typename T>
  TUTTI_KERNEL static Of<Bits<T>> narrowed(Of<float> value) {
    return Isa::template narrowed<T, kLanes>(value);
  }
};

// Arithmetic of kWidth elements.
template <class Isa, typename T, Reduction kReduction, unsigned kWidth>
struct VectorArithmetic : Arithmetic<T, kReduction, VectorLanes<Isa, kWidth>> {
  using Part = T;  // An element has sizeof(T) / sizeof(Part) lanes.

  TUTTI_KERNEL static auto repeated(Accumulator<T> factor) {
    return typename Arithmetic<T, kReduction, VectorLanes<Isa, kWidth>>::Value{} + factor;
  }
};

// Product and scaled sum of complex numbers. Even lanes are real parts, odd lanes imaginary parts.
template <class Isa, typename T, Reduction kReduction, unsigned kWidth>
struct VectorArithmetic<Isa, Complex<T>, kReduction, kWidth> : Sums<T, kReduction, VectorLanes<Isa, 2 * kWidth>> {
  using Part = T;
  using Value = Vector<T, 2 * kWidth>;

  TUTTI_KERNEL static Value repeated(Complex<T> factor) {
    Value value;
    for (unsigned k = 0; k < 2 * kWidth; ++k) value[k] = k % 2 == 0 ? factor.real : factor.imaginary;
    return value;
  }

  TUTTI_KERNEL static Value combine(Value a, Value b) {
    if constexpr (kReduction == Reduction::prod) {
      return multiply(a, b);
    } else {
      return a + b;
    }
  }

  TUTTI_KERNEL static Value multiply(Value a, Value b) {
    Lanes lanes;
    for (unsigned k = 0; k < 2 * kWidth; ++k) lanes[k] = k;
    const Value straight = __builtin_shuffle(a, lanes & ~Lane{1}) * b;
    const Value crossed = __builtin_shuffle(a, lanes | Lane{1}) * __builtin_shuffle(b, lanes ^ Lane{1});
    const Lanes signs = (~lanes & Lane{1}) << (8 * sizeof(T) - 1);  // Real parts are subtracted.
    return straight + __builtin_bit_cast(Value, __builtin_bit_cast(Lanes, crossed) ^ signs);
  }

 private:
  using Lane = Bits<T>;
  using Lanes = Vector<Lane, 2 * kWidth>;
};

}  // namespace tutti
