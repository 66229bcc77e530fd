// float16 conversions on a device, one instruction each. NaN is replaced by the canonical one.
#pragma once

#include "src/base/numeric.h"

namespace tutti {

TUTTI_NUMERIC float half_widened(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

TUTTI_NUMERIC std::uint16_t half_narrowed(float value) {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return value == value ? bits : static_cast<std::uint16_t>(Format<Float16>::nan);
}

}  // namespace tutti
