// Elements of every type for tests of arithmetic. A seed determines an element, so that all ranks can generate it.
#pragma once

#include <cstring>

#include "src/base/numeric.h"
#include "src/executor/numeric_reduce.h"

namespace tutti::test {

// Reductions that floats support.
inline constexpr Reduction kFloatReductions[] = {Reduction::sum, Reduction::prod, Reduction::min,
                                                 Reduction::max, Reduction::avg,  Reduction::pre_mul_sum};

inline std::uint64_t scrambled(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

// Returns an integer with random bits, or a float between -4 and 4 with all digits, so that sums are rounded and depend
// on their order. One of kAnyBits floats has random bits, such as those of infinities, NaN and subnormals.
template <typename T>
T element_of(std::uint64_t seed) {
  constexpr std::uint64_t kAnyBits = 13;
  const std::uint64_t word = scrambled(seed);
  if constexpr (Format<T>::is_float) {
    const double value = static_cast<double>(static_cast<std::int64_t>(word)) * 0x1p-61;
    if (seed % kAnyBits == 0) return __builtin_bit_cast(T, static_cast<Bits<T>>(word));
    if constexpr (is_narrow_float<T>) return from_float<T>(static_cast<float>(value));
    else return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<std::uint8_t>(word % 2)};
  } else if constexpr (requires(T number) { number.imaginary; }) {
    return {element_of<decltype(T::real)>(seed), element_of<decltype(T::real)>(~seed)};
  } else {
    return static_cast<T>(word);
  }
}

// Writes `count` elements; element i has the seed `seed + i`.
inline void fill_elements(DataType type, std::byte* to, std::uint64_t count, std::uint64_t seed) {
  visit(type, [&]<typename T>(Type<T>) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const T value = element_of<T>(seed + i);
      std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
  });
}

}  // namespace tutti::test
