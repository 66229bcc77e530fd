#include "perf/rounding/errors.h"

#include <algorithm>
#include <cmath>

namespace tutti::rounding {
namespace {

std::uint64_t block_of(CompressionFormat format) {
  switch (format) {
    case CompressionFormat::mxfp8:
    case CompressionFormat::int8_b32:
    case CompressionFormat::int6:
    case CompressionFormat::int4: return kMinScaleBlock;
    default: return kCompressionGroup;
  }
}

// Returns true if the block of the element has a result that is not finite.
bool beside_one(const std::vector<double>& results, std::uint64_t at, std::uint64_t block) {
  const std::uint64_t first = at / block * block;
  const auto begin = results.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end =
      results.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(first + block, results.size()));
  return std::any_of(begin, end, [](double value) { return !std::isfinite(value); });
}

float peak_around(const Exact& exact, std::uint64_t at, std::uint64_t block) {
  const std::uint64_t first = at / block * (block / kMinScaleBlock);
  float peak = 0;
  for (std::uint64_t i = first; i < std::min(first + block / kMinScaleBlock, exact.peaks().size()); ++i)
    peak = std::max(peak, exact.peaks()[i]);
  return peak;
}

bool is_as_said(double exact, float value, bool has_infinity) {
  if (!has_infinity || std::isnan(exact)) return std::isnan(value);
  return static_cast<double>(value) == exact;
}

}  // namespace

double Errors::relative() const { return errors == 0 ? 0 : std::sqrt(errors / results); }

double Errors::bias() const {
  return difference == 0 ? 0 : difference / std::sqrt(static_cast<double>(elements) * results);
}

double Errors::cosine() const { return products == 0 ? 0 : products / std::sqrt(results * values); }

FormatTraits format_traits_of(CompressionFormat format) {
  switch (format) {
    case CompressionFormat::fp16:
    case CompressionFormat::bf16:
    case CompressionFormat::fp8_e5m2: return {.block = 1, .has_infinity = true};
    case CompressionFormat::fp8_e4m3:
    case CompressionFormat::mxfp8: return {.block = 1, .has_infinity = false};
    default: return {.block = block_of(format), .has_infinity = false};
  }
}

void add_errors(const Exact& exact, std::span<const double> results, const std::vector<float>& values,
                CompressionFormat format, Errors& errors) {
  const FormatTraits traits = format_traits_of(format);
  const std::uint64_t block = block_of(format);
  const auto first = static_cast<std::uint64_t>(results.data() - exact.results().data());
  float peak = 0;
  for (std::uint64_t i = 0; i < results.size(); ++i) {
    const double right = results[i];
    const float value = values[i];
    if (i % kMinScaleBlock == 0) peak = peak_around(exact, first + i, block);
    if (!std::isfinite(right)) {
      if (std::isfinite(value)) ++errors.lost;
      else if (!is_as_said(right, value, traits.has_infinity)) ++errors.wrong;
      continue;
    }
    if (!std::isfinite(value)) {
      ++(beside_one(exact.results(), first + i, traits.block) ? errors.spoilt : errors.stray);
      continue;
    }
    const double error = value - right;
    ++errors.elements;
    errors.errors += error * error;
    errors.results += right * right;
    errors.values += static_cast<double>(value) * value;
    errors.products += right * value;
    errors.difference += error;
    if (peak > 0) errors.peak = std::max(errors.peak, std::fabs(error) / peak);
  }
}

}  // namespace tutti::rounding
