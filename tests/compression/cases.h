// Inputs for codecs: typical and adversarial values. Each group has one kind of values, selected at random.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "src/base/numeric.h"
#include "src/compression/codec.h"

namespace tutti::test {

inline constexpr DataType kTensorTypes[] = {DataType::float32, DataType::bfloat16, DataType::float16};

inline std::vector<CompressionFormat> compression_formats() {
  std::vector<CompressionFormat> formats;
  for (std::uint32_t f = 1; f < kCompressionFormats; ++f) formats.push_back(static_cast<CompressionFormat>(f));
  return formats;
}

// Returns the value rounded to the type.
inline float stored_as(DataType type, float value) {
  if (type == DataType::float16) return to_float(from_float<Float16>(value));
  if (type == DataType::bfloat16) return to_float(from_float<BFloat16>(value));
  return value;
}

inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

class CaseValues {
 public:
  explicit CaseValues(std::uint64_t seed) : random_(seed) {}

  std::uint64_t word() { return random_(); }
  float normal() { return normal_(random_); }
  float any_bits() { return float_of(static_cast<std::uint32_t>(random_())); }

  // Returns a group of values of a random kind and magnitude. With `spoilt`, up to 3 of them are NaN or infinite.
  std::vector<float> group(bool spoilt) {
    std::vector<float> values(kCompressionGroup);
    const auto kind = static_cast<int>(random_() % 9);
    const float unit = std::ldexp(1.0f, static_cast<int>(random_() % 270) - 145);
    for (float& value : values) value = one(kind, unit);
    if (kind == 1) values[random_() % kCompressionGroup] = 1e6f * unit;
    if (kind == 2) values[random_() % kCompressionGroup] = any_bits();
    for (float& value : values) {
      if (!std::isfinite(value)) value = std::numeric_limits<float>::max();
    }
    for (std::uint64_t i = spoilt ? random_() % 4 : 0; i > 0; --i) values[random_() % kCompressionGroup] = special();
    return values;
  }

 private:
  float one(int kind, float unit) {
    switch (kind) {
      case 0: return normal() * unit;
      case 1: return normal() * unit;
      case 2: return 0.0f;
      case 3: return any_bits();
      case 4: return float_of(static_cast<std::uint32_t>(random_()) & 0x807fffffu);  // Subnormal.
      case 5: return (random_() % 2 == 0 ? -1 : 1) * std::numeric_limits<float>::max();
      case 6: return unit * static_cast<float>(static_cast<int>(random_() % 511) - 255) / 2;  // Ties.
      case 7:
        return normal() * std::ldexp(1.0f, static_cast<int>(random_() % 60) - 40);  // Around the limits of float16.
      default: return -0.0f;
    }
  }
  float special() {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    switch (random_() % 4) {
      case 0: return infinity;
      case 1: return -infinity;
      case 2: return float_of(0x7f800001u | (static_cast<std::uint32_t>(random_()) & 0x807fffffu));
      default: return std::numeric_limits<float>::quiet_NaN();
    }
  }

  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
};

inline std::vector<std::byte> encoded(const Codec& codec, CompressionFormat format, const std::vector<float>& values,
                                      DataType type, const Dither* dither = nullptr) {
  std::vector<std::byte> compression((values.size() + kCompressionGroup - 1) / kCompressionGroup *
                                     compressed_bytes(format));
  codec.encode(values.data(), values.size(), compression.data(), range_of(type), dither);
  return compression;
}

inline std::vector<float> decoded(const Codec& codec, const std::vector<std::byte>& compression, std::uint64_t count) {
  std::vector<float> values(count);
  codec.decode(compression.data(), count, values.data());
  return values;
}

// Compares bit by bit, including NaN and -0.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace tutti::test
