// Compression codecs: float32 to a compression format and back, on this CPU. Callers with other tensor types round the
// decoded values to their type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/platform.h"
#include "src/base/types.h"
#include "src/compression/format.h"

namespace tutti {

// Limits of the tensor's type, which guarantee idempotence: decoding, rounding to the tensor's type and encoding again
// gives the same bytes. A magnitude above `largest` counts as infinite.
struct GroupRange {
  float largest;
  // Minimum scale of int8. The minimum scales of other formats are multiples of it, so that the tensor's type can hold
  // their codes.
  float min_step;
  DataType type;
};
// Range for float32, float16 or bfloat16. For float32 and bfloat16, the minimum scale keeps decoded values from being
// subnormal. Processors that flush subnormals to zero then agree with those that do not.
TUTTI_HOST_DEVICE inline GroupRange range_of(DataType type) {
  if (type == DataType::float16) return {65504.0f, 0x1p-22f, type};
  return {type == DataType::bfloat16 ? 0x1.fep127f : 0x1.fffffep127f, 0x1p-124f, type};
}

// Stochastic rounding: each element is rounded up with the probability that makes its expected value exact. The random
// word of element i is the first word of Philox4x32-10 at counter `first` + i with key `seed`.
struct Dither {
  std::uint64_t seed;
  std::uint64_t first;
};

// Encodes `count` values. Writes compressed_bytes() bytes for each started group of kCompressionGroup elements. A null
// `dither` means round to nearest, ties to even.
using Encode = void (*)(const float* values, std::uint64_t count, std::byte* encoded, GroupRange range,
                        const Dither* dither);
// Reads whole groups and writes `count` values. All bit patterns are valid input.
using Decode = void (*)(const std::byte* encoded, std::uint64_t count, float* values);

struct Codec {
  Encode encode;
  Decode decode;
};

// Returns the codec with the widest instructions of this CPU. All instruction sets give identical bytes. `format` must
// not be `none`.
Codec find_codec(CompressionFormat format);

}  // namespace tutti
