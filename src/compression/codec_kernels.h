// The codecs of one source file each, which are compiled once for each of several instruction sets.
#pragma once

#include "src/compression/codec.h"

namespace tutti {

struct CodecKernels {
  const char* name;  // "avx2"
  Codec (*find_codec)(CompressionFormat);
};

extern const CodecKernels kCodecScalar;    // One element at a time.
extern const CodecKernels kCodecBaseline;  // What every CPU can do.
extern const CodecKernels kCodecAvx2;      // On x86.
extern const CodecKernels kCodecAvx512;    // On x86.

// Those that this CPU runs, the widest last.
struct CodecKernelList {
  const CodecKernels* first;
  std::uint32_t count;
};
CodecKernelList codec_kernels();

// One element at a time, as an Encode. Of all forms; defined where the flags are those of every CPU.
template <class Form>
void encode_singly(const float* values, std::uint64_t count, std::byte* compression, GroupRange range,
                   const Dither* dither);

}  // namespace tutti
