#include "src/wire/format.h"

#include <cmath>

#include "src/base/named.h"

namespace tutti {
namespace {

constexpr Named<WireFormat, kWireFormats> kFormats = {
    "wire format", {"raw", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "mxfp8", "int8", "int8_b32", "int6", "int4"}};

}  // namespace

const char* name(WireFormat format) { return kFormats.name(format); }
Result<WireFormat> parse_wire(std::string_view text) { return kFormats.parse(text); }

std::uint32_t wire_bytes(WireFormat format) {
  switch (format) {
    case WireFormat::none: return 0;
    case WireFormat::fp16:
    case WireFormat::bf16: return 2 * kWireGroup;
    case WireFormat::fp8_e4m3:
    case WireFormat::fp8_e5m2:
    case WireFormat::int8: return 2 + kWireGroup;
    case WireFormat::mxfp8: return 4 + kWireGroup;
    case WireFormat::int8_b32: return 8 + kWireGroup;
    case WireFormat::int6: return 8 + kWireGroup * 3 / 4;
    case WireFormat::int4: return 8 + kWireGroup / 2;
  }
  return 0;
}

std::uint64_t wire_bytes(WireFormat format, std::uint64_t count, DataType type) {
  if (format == WireFormat::none) return count * size_of(type);
  return (count + kWireGroup - 1) / kWireGroup * wire_bytes(format);
}

WireFormat memory_format(DataType type) {
  if (type == DataType::float16) return WireFormat::fp16;
  return type == DataType::bfloat16 ? WireFormat::bf16 : WireFormat::none;
}

double wire_error(WireFormat format, Rounding rounding) {
  constexpr double errors[2][kWireFormats] = {{0, .00021, .00166, .0257, .0513, .0294, .00648, .0054, .0219, .0970},
                                              {0, .00029, .00235, .0363, .0723, .0395, .00916, .0076, .0310, .1368}};
  return errors[static_cast<std::uint32_t>(rounding)][static_cast<std::uint32_t>(format)];
}

// Errors grow the sums, which are rounded again: the second factor is that of a ring, whose rank k adds (k - 1) q^2 to
// the variance and rounds k. `mxfp8` cuts its largest codes off, always towards zero, which does not average out; how
// much that is was measured (perf/accuracy), with 2 to 256 ranks.
double wire_error_after(WireFormat format, double roundings, Rounding rounding) {
  const double once = wire_error(format, rounding);
  const double variance = once * once * roundings;
  const double grown = 2 * variance;
  const double more = grown < 1e-3 ? 1 + grown / 3 : 2 * (std::expm1(grown) - grown) / (grown * grown);
  const double cut_off = format == WireFormat::mxfp8 ? 1 + 0.3 * roundings / (roundings + 12) : 1;
  return std::sqrt(variance * more) * cut_off;
}

}  // namespace tutti
