// What every CPU can do: 128-bit registers in GNU's notation.
#include "src/base/vector_baseline.h"
#include "src/compression/codec_kernel.h"

namespace tutti {

const CodecKernels kCodecBaseline = {"baseline", find_codec_in<Baseline>};

}  // namespace tutti
