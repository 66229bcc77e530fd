// Baseline instructions: 128-bit GNU vectors.
#include "src/base/vector_baseline.h"
#include "src/compression/codec_kernel.h"

namespace tutti {

const CodecKernels kCodecBaseline = {"baseline", find_codec_in<Baseline>};

}  // namespace tutti
