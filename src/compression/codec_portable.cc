// Which codecs a CPU other than x86 runs.
#include "src/compression/codec_kernels.h"

namespace tutti {

CodecKernelList codec_kernels() {
  static const CodecKernels kernels[] = {kCodecScalar, kCodecBaseline};
  return {kernels, 2};
}

}  // namespace tutti
