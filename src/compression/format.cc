#include "src/compression/format.h"

#include <cmath>

#include "src/base/named.h"

namespace tutti {
namespace {

constexpr Named<CompressionFormat, kCompressionFormats> kFormats = {
    "compression format", {"raw", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "mxfp8", "int8", "int8_b32", "int6", "int4"}};

}  // namespace

const char* name(CompressionFormat format) { return kFormats.name(format); }
Result<CompressionFormat> parse_compression(std::string_view text) { return kFormats.parse(text); }

std::uint32_t compressed_bytes(CompressionFormat format) {
  switch (format) {
    case CompressionFormat::none: return 0;
    case CompressionFormat::fp16:
    case CompressionFormat::bf16: return 2 * kCompressionGroup;
    case CompressionFormat::fp8_e4m3:
    case CompressionFormat::fp8_e5m2:
    case CompressionFormat::int8: return 2 + kCompressionGroup;
    case CompressionFormat::mxfp8: return 4 + kCompressionGroup;
    case CompressionFormat::int8_b32: return 8 + kCompressionGroup;
    case CompressionFormat::int6: return 8 + kCompressionGroup * 3 / 4;
    case CompressionFormat::int4: return 8 + kCompressionGroup / 2;
  }
  return 0;
}

std::uint64_t compressed_bytes(CompressionFormat format, std::uint64_t count, DataType type) {
  if (format == CompressionFormat::none) return count * size_of(type);
  return compression_groups(count) * compressed_bytes(format);
}

CompressionFormat memory_format(DataType type) {
  if (type == DataType::float16) return CompressionFormat::fp16;
  return type == DataType::bfloat16 ? CompressionFormat::bf16 : CompressionFormat::none;
}

double compression_error(CompressionFormat format, Rounding rounding) {
  constexpr double errors[2][kCompressionFormats] = {
      {0, .00021, .00166, .0257, .0513, .0294, .00648, .0054, .0219, .0970},
      {0, .00029, .00235, .0363, .0723, .0395, .00916, .0076, .0310, .1368}};
  return errors[static_cast<std::uint32_t>(rounding)][static_cast<std::uint32_t>(format)];
}

// Rounding errors enlarge the partial sums, and these are rounded again. The factor `more` is that of a ring, where
// rank k adds (k - 1) q^2 to the variance and rounds k times. The format mxfp8 saturates its largest codes towards
// zero, which does not average out. The factor for mxfp8 was measured with 2 to 256 ranks (perf/accuracy).
double compression_error_after(CompressionFormat format, double roundings, Rounding rounding) {
  const double once = compression_error(format, rounding);
  const double variance = once * once * roundings;
  const double grown = 2 * variance;
  const double more = grown < 1e-3 ? 1 + grown / 3 : 2 * (std::expm1(grown) - grown) / (grown * grown);
  const double cut_off = format == CompressionFormat::mxfp8 ? 1 + 0.3 * roundings / (roundings + 12) : 1;
  return std::sqrt(variance * more) * cut_off;
}

}  // namespace tutti
