// Codecs on a GPU, a thread for each group. Blocks until they are done; buffers are the host's.
#pragma once

#include "src/wire/codec.h"

namespace tutti::test {

// False if CUDA fails.
bool encode_on_gpu(WireFormat format, const float* values, std::uint64_t count, std::byte* wire, WireRange range,
                   const Dither* dither);
bool decode_on_gpu(WireFormat format, const std::byte* wire, std::uint64_t count, float* values);

}  // namespace tutti::test
