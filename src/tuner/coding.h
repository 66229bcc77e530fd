// What becomes of a call whose messages are in a wire format: how large its error is, and what is encoded and decoded.
#pragma once

#include "src/plan/effort.h"
#include "src/plan/problem.h"
#include "src/wire/format.h"

namespace tutti {

// Relative root mean square of the error of results, where terms are independent Gaussian numbers:
// docs/wire-formats.md.
double expected_error(WireFormat wire, const Effort& effort);

// Formats that may be taken unasked, the most exact first. Not `int4`, whose error is a tenth; nor `fp16`, which holds
// numbers from 2^-24 to 2^16 alone, so that nobody can say how large its error is without looking at them.
inline constexpr WireFormat kBoundedFormats[] = {WireFormat::bf16,    WireFormat::int8_b32, WireFormat::int8,
                                                 WireFormat::int6,    WireFormat::fp8_e4m3, WireFormat::mxfp8,
                                                 WireFormat::fp8_e5m2};

// Whether a format keeps to a bound with some room: tensors of 16 bits round once more, and what is expected is a mean.
bool keeps_to(double max_relative_error, WireFormat wire, const Effort& effort);

// Blocks that the busiest rank encodes and decodes. What is only passed on is not encoded again; by algorithms that
// halve what they reduce a third more is than this says.
struct Coded {
  double encoded = 0, decoded = 0;
};
Coded coded_of(const Problem& problem, const Effort& effort);

}  // namespace tutti
