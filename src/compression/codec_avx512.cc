// AVX-512 with F, BW, VL and DQ.
#include "src/base/vector_avx512.h"
#include "src/compression/codec_kernel.h"
#include "src/compression/packing_x86.h"

namespace tutti {

const CodecKernels kCodecAvx512 = {"avx512", find_codec_in<Avx512>};

}  // namespace tutti
