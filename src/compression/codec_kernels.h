// Codec implementations, one source file per instruction set.
#pragma once

#include "src/compression/codec.h"

namespace tutti {

struct CodecKernels {
  const char* name;  // "avx2"
  Codec (*find_codec)(CompressionFormat);
};

extern const CodecKernels kCodecScalar;    // One element at a time.
extern const CodecKernels kCodecBaseline;  // Baseline instructions of the architecture.
extern const CodecKernels kCodecAvx2;      // x86 only.
extern const CodecKernels kCodecAvx512;    // x86 only.

// Codecs that this CPU supports, widest last.
struct CodecKernelList {
  const CodecKernels* first;
  std::uint32_t count;
};
CodecKernelList codec_kernels();

// Scalar encoder with the signature of Encode, for all formats. Defined in a file with baseline compiler flags.
template <class Form>
void encode_singly(const float* values, std::uint64_t count, std::byte* encoded, GroupRange range,
                   const Dither* dither);

}  // namespace tutti
