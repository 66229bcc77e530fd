#include "src/wire/format.h"

#include <cmath>
#include <string>

namespace tutti {

const char* name(WireFormat format) {
  constexpr const char* names[kWireFormats] = {"none",  "fp16", "bf16",     "fp8_e4m3", "fp8_e5m2",
                                               "mxfp8", "int8", "int8_b32", "int6",     "int4"};
  const auto index = static_cast<std::uint32_t>(format);
  return index < kWireFormats ? names[index] : nullptr;
}

Result<WireFormat> parse_wire(std::string_view text) {
  std::string known;
  for (std::uint32_t i = 0; i < kWireFormats; ++i) {
    const auto format = static_cast<WireFormat>(i);
    if (text == name(format)) return format;
    known += (i == 0 ? "" : ", ") + std::string(name(format));
  }
  return invalid_argument("'" + std::string(text) + "' is no wire format; there are " + known);
}

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

double wire_error(WireFormat format) {
  constexpr double errors[kWireFormats] = {0, .00021, .00166, .0257, .0513, .0294, .00648, .0054, .0219, .0970};
  return errors[static_cast<std::uint32_t>(format)];
}

// Errors grow the sums, which are rounded again: the second factor is that of a ring, whose rank k adds (k - 1) q^2 to
// the variance and rounds k. `mxfp8` cuts its largest codes off, always towards zero, which does not average out; how
// much that is was measured (perf/accuracy), with 2 to 256 ranks.
double wire_error_after(WireFormat format, double roundings) {
  const double variance = wire_error(format) * wire_error(format) * roundings;
  const double grown = 2 * variance;
  const double more = grown < 1e-3 ? 1 + grown / 3 : 2 * (std::expm1(grown) - grown) / (grown * grown);
  const double cut_off = format == WireFormat::mxfp8 ? 1 + 0.3 * roundings / (roundings + 12) : 1;
  return std::sqrt(variance * more) * cut_off;
}

}  // namespace tutti
