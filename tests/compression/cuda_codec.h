// Codecs on a GPU, with a thread per group. Functions block until the GPU is done. Buffers are in host memory.
#pragma once

#include "src/compression/codec.h"

namespace tutti::test {

// Both functions return false if CUDA fails.
bool encode_on_gpu(CompressionFormat format, const float* values, std::uint64_t count, std::byte* encoded,
                   GroupRange range, const Dither* dither);
bool decode_on_gpu(CompressionFormat format, const std::byte* encoded, std::uint64_t count, float* values);

}  // namespace tutti::test
