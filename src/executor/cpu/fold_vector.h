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

}  // namespace tutti
