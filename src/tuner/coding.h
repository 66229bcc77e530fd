// Effects of compression on a call: expected error, and amount of encoding and decoding.
#pragma once

#include "src/compression/format.h"
#include "src/plan/cost_law.h"
#include "src/plan/problem.h"

namespace tutti {

// Relative RMS error of results for independent Gaussian terms; see docs/reference/compression-formats.md.
double expected_error(CompressionFormat compression, const CostLaw& cost_law);

// Formats that may be chosen automatically, most exact first. Without int4, whose error is 10 %. Without fp16, whose
// range is 2^-24 to 2^16, so that the error depends on the values.
inline constexpr CompressionFormat kBoundedFormats[] = {
    CompressionFormat::bf16,     CompressionFormat::int8_b32, CompressionFormat::int8,    CompressionFormat::int6,
    CompressionFormat::fp8_e4m3, CompressionFormat::mxfp8,    CompressionFormat::fp8_e5m2};

// True if the expected error is below the bound with some margin. The margin covers the additional rounding of 16-bit
// tensors, and the fact that the expected error is a mean.
bool keeps_to(double max_relative_error, CompressionFormat compression, const CostLaw& cost_law);

// Blocks that the busiest rank encodes and decodes. Forwarded messages are not encoded again. For algorithms by
// recursive halving, the true amount is a third larger.
struct CodecWork {
  double encoded = 0, decoded = 0;
};
CodecWork codec_work(const Problem& problem, const CostLaw& cost_law);

}  // namespace tutti
