// Common code of the AVX2 and AVX-512 kernels. Include it only in files compiled with the flags for them.
#pragma once

#include <immintrin.h>

#include "src/base/vector.h"

namespace tutti {

// Self is the derived class. It provides kBytes and conversions for registers of its own width: words() and packed<T>()
// between words and narrower integers, for values that fit; from_halves() and to_halves() between fp32 and fp16.
template <class Self>
struct X86 {
  template <typename T, unsigned kLanes>
  TUTTI_KERNEL static Vector<float, kLanes> widened(Vector<Bits<T>, kLanes> bits) {
    if constexpr (std::is_same_v<T, Float16>) {
      return from_halves<kLanes>(bits);
    } else if constexpr (std::is_same_v<T, Float8E5M2>) {
      return from_halves<kLanes>(in_high_bytes<kLanes>(bits));  // E5M2 is a truncated fp16.
    } else {
      return widen<T, Vector<float, kLanes>>(words<T, kLanes>(bits));
    }
  }

  // Like widened(), but for finite values only. E4M3 bits are moved to the position of an fp16, whose exponent bias is
  // 8 more.
  template <typename T, unsigned kLanes>
  TUTTI_KERNEL static Vector<float, kLanes> widened_finite(Vector<Bits<T>, kLanes> bits) {
    if constexpr (std::is_same_v<T, Float8E4M3>) {
      using Signed = Vector<std::int16_t, kLanes>;
      const auto high = __builtin_bit_cast(Signed, in_high_bytes<kLanes>(bits));
      // The shift duplicates the sign; the mask clears the copy.
      const Signed half = high >> 1 & ~std::int16_t{0x4000};
      return from_halves<kLanes>(__builtin_bit_cast(Vector<std::uint16_t, kLanes>, half)) * 256.0f;
    } else {
      return widened<T, kLanes>(bits);
    }
  }

  template <typename T, unsigned kLanes>
  TUTTI_KERNEL static Vector<Bits<T>, kLanes> narrowed(Vector<float, kLanes> value) {
    if constexpr (std::is_same_v<T, Float16>) {
      const auto nan = __builtin_bit_cast(decltype(value), Vector<std::uint32_t, kLanes>{} + 0x7fc00000u);
      return to_halves<kLanes>(value == value ? value : nan);  // The canonical NaN of the format.
    } else if constexpr (kLanes * sizeof(float) == Self::kBytes) {
      return Self::template packed<T>(narrow<T, Vector<std::uint32_t, kLanes>>(value));
    } else {
      return narrowed_portably<T, kLanes>(value);
    }
  }

  static void fence() { _mm_sfence(); }

  // GCC allows `prefetchw` only with a flag that AVX2 does not imply. The instruction has no effect on CPUs without it.
  TUTTI_KERNEL static void prepare(const std::byte* line) { asm volatile("prefetchw %0" : : "m"(*line)); }

  template <typename Register>
  TUTTI_KERNEL static void stream(const Register& value, std::byte* to) {
    if constexpr (sizeof value == 64) {
      Self::stream_line(value, to);
    } else if constexpr (sizeof value == 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, value));
    } else if constexpr (sizeof value == 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, value));
    } else if constexpr (sizeof value == 8) {
      _mm_stream_si64(reinterpret_cast<long long*>(to), __builtin_bit_cast(long long, value));
    } else {
      std::memcpy(to, &value, sizeof value);  // Only averages of 8-bit elements are so small.
    }
  }

 private:
  template <unsigned kLanes>
  TUTTI_KERNEL static Vector<std::uint16_t, kLanes> in_high_bytes(Vector<std::uint8_t, kLanes> bytes) {
    if constexpr (kLanes == 8) {
      const __m128i low = _mm_cvtsi64_si128(__builtin_bit_cast(long long, bytes));
      return __builtin_bit_cast(Vector<std::uint16_t, 8>, _mm_unpacklo_epi8(_mm_setzero_si128(), low));
    } else {
      return converted<std::uint16_t, std::uint8_t, kLanes>(bytes) << 8;
    }
  }

  template <typename T, unsigned kLanes>
  TUTTI_KERNEL static Vector<std::uint32_t, kLanes> words(Vector<Bits<T>, kLanes> bits) {
    if constexpr (kLanes * sizeof(float) == Self::kBytes) {
      return Self::words(bits);
    } else {
      return converted<std::uint32_t, Bits<T>, kLanes>(bits);
    }
  }

  template <unsigned kLanes>
  TUTTI_KERNEL static Vector<float, kLanes> from_halves(Vector<std::uint16_t, kLanes> bits) {
    if constexpr (kLanes * sizeof(float) == Self::kBytes) {
      return Self::from_halves(bits);
    } else if constexpr (kLanes == 8) {
      return __builtin_bit_cast(Vector<float, 8>, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, bits)));
    } else {
      __m128i halves = _mm_setzero_si128();
      std::memcpy(&halves, &bits, sizeof bits);
      const __m128 floats = _mm_cvtph_ps(halves);
      return load<float, kLanes>(reinterpret_cast<const std::byte*>(&floats));
    }
  }

  template <unsigned kLanes>
  TUTTI_KERNEL static Vector<std::uint16_t, kLanes> to_halves(Vector<float, kLanes> value) {
    if constexpr (kLanes * sizeof(float) == Self::kBytes) {
      return Self::to_halves(value);
    } else if constexpr (kLanes == 8) {
      return __builtin_bit_cast(Vector<std::uint16_t, 8>,
                                _mm256_cvtps_ph(__builtin_bit_cast(__m256, value), _MM_FROUND_TO_NEAREST_INT));
    } else {
      __m128 floats = _mm_setzero_ps();
      std::memcpy(&floats, &value, sizeof value);
      const __m128i halves = _mm_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT);
      return load<std::uint16_t, kLanes>(reinterpret_cast<const std::byte*>(&halves));
    }
  }
};

}  // namespace tutti
