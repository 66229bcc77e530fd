// What becomes of a call whose messages are in a compression format: how large its error is, and what is encoded and
// decoded.
#pragma once

#include "src/compression/format.h"
#include "src/plan/cost_law.h"
#include "src/plan/problem.h"

namespace tutti {

// Relative root mean square of the error of results, where terms are independent Gaussian numbers:
// docs/reference/compression-formats.md.
double expected_error(CompressionFormat compression, const CostLaw& cost_law);

// Formats that may be taken unasked, the most exact first. Not `int4`, whose error is a tenth; nor `fp16`, which holds
// numbers from 2^-24 to 2^16 alone, so that nobody can say how large its error is without looking at them.
inline constexpr CompressionFormat kBoundedFormats[] = {
    CompressionFormat::bf16,     CompressionFormat::int8_b32, CompressionFormat::int8,    CompressionFormat::int6,
    CompressionFormat::fp8_e4m3, CompressionFormat::mxfp8,    CompressionFormat::fp8_e5m2};

// Whether a format keeps to a bound with some room: tensors of 16 bits round once more, and what is expected is a mean.
bool keeps_to(double max_relative_error, CompressionFormat compression, const CostLaw& cost_law);

// Blocks that the busiest rank encodes and decodes. What is only passed on is not encoded again; by algorithms that
// halve what they reduce a third more is than this says.
struct Compressed {
  double encoded = 0, decoded = 0;
};
Compressed coded_of(const Problem& problem, const CostLaw& cost_law);

}  // namespace tutti
