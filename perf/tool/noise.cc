#include "perf/tool/noise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace perf {
namespace {

// Rounds to nearest, ties to even.
std::uint16_t bfloat_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float of_bfloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// For numbers below 65,504. `nearbyint` rounds ties to even.
std::uint16_t half_of(float value) {
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(value) >> 31 << 15;
  const float size = std::fabs(value);
  const int exponent = std::max(size == 0 ? -14 : std::ilogb(size), -14);
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<std::uint16_t>(sign | (static_cast<std::uint32_t>(exponent + 14) * 1024 + units));
}

float of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int units = (bits & 1023) + (exponent > 0 ? 1024 : 0);
  const float size = std::ldexp(static_cast<float>(units), std::max(exponent, 1) - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

std::uint16_t bits_of(tutti_type type, float value) {
  return type == tutti_float16 ? half_of(value) : bfloat_of(value);
}

float value_of(tutti_type type, std::uint16_t bits) { return type == tutti_float16 ? of_half(bits) : of_bfloat(bits); }

}  // namespace

// G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958.
float Noise::at(int rank, std::size_t index) const {
  const auto of_rank = static_cast<std::uint32_t>(rank);
  const double radius = (mix(index, 2 * of_rank, salt_) + 1.0) / 4294967296.0;
  const double angle = mix(index, 2 * of_rank + 1, salt_) / 4294967296.0;
  const auto value = static_cast<float>(std::sqrt(-2 * std::log(radius)) * std::cos(2 * 3.14159265358979 * angle));
  return element_.size == sizeof(float) ? value : value_of(element_.type, bits_of(element_.type, value));
}

void Noise::fill(void* memory, int rank, std::size_t count) const {
  char* bytes = static_cast<char*>(memory);
  for (std::size_t i = 0; i < count; ++i, bytes += element_.size) {
    const float value = at(rank, i);
    const std::uint16_t half = bits_of(element_.type, value);
    element_.size == sizeof value ? std::memcpy(bytes, &value, sizeof value) : std::memcpy(bytes, &half, sizeof half);
  }
}

double Noise::reduced(std::size_t index) const {
  double result = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    const double value = at(rank, index) * (operation_.is_mulsum ? Pattern::scalar(rank) : 1.0);
    const bool first = rank == 0;
    if (!operation_.is_mulsum && operation_.reduction == tutti_prod) result = first ? value : result * value;
    else if (!operation_.is_mulsum && operation_.reduction == tutti_min)
      result = first ? value : std::min(result, value);
    else if (!operation_.is_mulsum && operation_.reduction == tutti_max)
      result = first ? value : std::max(result, value);
    else result += value;
  }
  return !operation_.is_mulsum && operation_.reduction == tutti_avg ? result / ranks_ : result;
}

Squares Noise::squares(const void* memory, const Output& output) const {
  const char* bytes = static_cast<const char*>(memory);
  Squares sums;
  sums.digest = 14695981039346656037ULL;  // FNV-1a over elements.
  for (std::size_t block = 0; block < output.blocks; ++block) {
    for (std::size_t i = 0; i < output.count; ++i, bytes += element_.size) {
      const std::size_t index = output.first + i;
      const double right = output.is_reduced ? reduced(index) : at(static_cast<int>(output.source + block), index);
      float value = 0;
      std::uint16_t half = 0;
      std::memcpy(&half, bytes, sizeof half);
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes, element_.size);
      sums.digest = (sums.digest ^ bits) * 1099511628211ULL;
      if (element_.size == sizeof value) std::memcpy(&value, bytes, sizeof value);
      else value = value_of(element_.type, half);
      sums.errors += (value - right) * (value - right);
      sums.results += right * right;
    }
  }
  return sums;
}

double Noise::max_error(double expected, std::uint64_t results) const {
  const bool sums = operation_.is_mulsum || operation_.reduction == tutti_sum || operation_.reduction == tutti_avg;
  const double type = element_.type == tutti_bfloat16 ? 1.7e-3 : 3e-4;  // One more rounding, to the element type.
  return std::sqrt(expected * expected + type * type) * (sums ? 1.25 : 4) *
         (1 + 8 / std::sqrt(static_cast<double>(results)));
}

}  // namespace perf
