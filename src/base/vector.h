// SIMD vectors in GNU notation, for code that is compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/base/numeric.h"

#define TUTTI_KERNEL [[gnu::always_inline]] inline

namespace tutti {

template <typename T, unsigned kLanes>
struct VectorOf {
  using type [[gnu::vector_size(sizeof(T) * kLanes)]] = T;
};
template <typename T, unsigned kLanes>
using Vector = typename VectorOf<T, kLanes>::type;

template <typename T, unsigned kLanes>
TUTTI_KERNEL Vector<T, kLanes> load(const std::byte* from) {
  Vector<T, kLanes> result;
  std::memcpy(&result, from, sizeof result);
  return result;
}

// Converts lane by lane, in steps that have instructions: sizes change by a factor of two, and small integers are
// converted to float through 32 bits.
template <typename To, typename From, unsigned kLanes>
TUTTI_KERNEL Vector<To, kLanes> converted(Vector<From, kLanes> x) {
  constexpr bool crosses = std::is_integral_v<From> != std::is_integral_v<To>;
  if constexpr (crosses && (sizeof(From) < 4 || sizeof(To) < 4)) {
    return converted<To, std::int32_t, kLanes>(converted<std::int32_t, From, kLanes>(x));
  } else if constexpr (sizeof(From) == 1 && sizeof(To) == 4) {
    using HalfWord = std::conditional_t<std::is_signed_v<From>, std::int16_t, std::uint16_t>;
    return converted<To, HalfWord, kLanes>(converted<HalfWord, From, kLanes>(x));
  } else if constexpr (sizeof(From) == 4 && sizeof(To) == 1) {
    return converted<To, std::uint16_t, kLanes>(converted<std::uint16_t, From, kLanes>(x));
  } else {
    return __builtin_convertvector(x, Vector<To, kLanes>);
  }
}

// Conversions without instructions for them.
template <typename T, unsigned kLanes>
TUTTI_KERNEL Vector<float, kLanes> widened_portably(Vector<Bits<T>, kLanes> bits) {
  return widen<T, Vector<float, kLanes>>(converted<std::uint32_t, Bits<T>, kLanes>(bits));
}
template <typename T, unsigned kLanes>
TUTTI_KERNEL Vector<Bits<T>, kLanes> narrowed_portably(Vector<float, kLanes> value) {
  return converted<Bits<T>, std::uint32_t, kLanes>(narrow<T, Vector<std::uint32_t, kLanes>>(value));
}

}  // namespace tutti
