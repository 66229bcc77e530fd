// AVX2 and F16C.
#include "src/base/vector_avx2.h"
#include "src/compression/codec_kernel.h"
#include "src/compression/packing_x86.h"

namespace tutti {

const CodecKernels kCodecAvx2 = {"avx2", find_codec_in<Avx2>};

}  // namespace tutti
