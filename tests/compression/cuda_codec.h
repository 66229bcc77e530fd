// Codecs on a GPU, a thread for each group. Blocks until they are done; buffers are the host's.
#pragma once

#include "src/compression/codec.h"

namespace tutti::test {

// False if CUDA fails.
bool encode_on_gpu(CompressionFormat format, const float* values, std::uint64_t count, std::byte* compression,
                   GroupRange range, const Dither* dither);
bool decode_on_gpu(CompressionFormat format, const std::byte* compression, std::uint64_t count, float* values);

}  // namespace tutti::test
