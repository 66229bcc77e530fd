// From float32 to the wire and back, on this CPU. Who keeps tensors of other types rounds what is decoded to them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/platform.h"
#include "src/base/types.h"
#include "src/compression/format.h"

namespace tutti {

// What the tensor's type can hold, which decides what may be encoded: what is decoded, rounded to the type and encoded
// again shall give the same bytes. A magnitude above `largest` counts as infinite.
struct GroupRange {
  float largest;
  // The least scale of int8; that of other formats is a multiple, so that the type holds their codes.
  float min_step;
  DataType type;
};
// Of float32, float16 or bfloat16. The least steps of the wide types keep what is decoded from being subnormal: no rank
// flushes what another does not.
TUTTI_HOST_DEVICE inline GroupRange range_of(DataType type) {
  if (type == DataType::float16) return {65504.0f, 0x1p-22f, type};
  return {type == DataType::bfloat16 ? 0x1.fep127f : 0x1.fffffep127f, 0x1p-124f, type};
}

// Stochastic rounding: element i of a call is rounded up with the probability that makes the mean right, by the first
// word of Philox4x32-10 at counter first + i under the key `seed`.
struct Dither {
  std::uint64_t seed;
  std::uint64_t first;
};

// Writes compressed_bytes() for each group of kCompressionGroup elements that has begun. `dither` null: to nearest,
// ties to even.
using Encode = void (*)(const float* values, std::uint64_t count, std::byte* compression, GroupRange range,
                        const Dither* dither);
// Reads whole groups, and writes `count` values. Any bytes can be decoded.
using Decode = void (*)(const std::byte* compression, std::uint64_t count, float* values);

struct Codec {
  Encode encode;
  Decode decode;
};

// With the widest instructions of this CPU, which give the bits that all others give. Of any format but `none`.
Codec find_codec(CompressionFormat format);

}  // namespace tutti
