// AVX-512 with F, BW, VL and DQ.
#include "src/wire/codec_kernel.h"

namespace tutti {
namespace {

struct Avx512 {
  static constexpr unsigned kBytes = 64;
};

}  // namespace

const CodecKernels kCodecAvx512 = {"avx512", find_codec_in<Avx512>};

}  // namespace tutti
