// AVX2 and F16C.
#include "src/wire/codec_kernel.h"

namespace tutti {
namespace {

struct Avx2 {
  static constexpr unsigned kBytes = 32;
};

}  // namespace

const CodecKernels kCodecAvx2 = {"avx2", find_codec_in<Avx2>};

}  // namespace tutti
