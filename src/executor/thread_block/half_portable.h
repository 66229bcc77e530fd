// float16 conversions in portable code.
#pragma once

#include "src/executor/numeric_reduce.h"

namespace tutti {

TUTTI_NUMERIC float half_widened(std::uint16_t bits) { return Scalar::widened<Float16>(bits); }
TUTTI_NUMERIC std::uint16_t half_narrowed(float value) { return Scalar::narrowed<Float16>(value); }

}  // namespace tutti
