// Codecs for CPUs other than x86.
#include "src/compression/codec_kernels.h"

namespace tutti {

CodecKernelList codec_kernels() {
  static const CodecKernels kernels[] = {kCodecScalar, kCodecBaseline};
  return {kernels, 2};
}

}  // namespace tutti
