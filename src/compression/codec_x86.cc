// Codecs for x86 CPUs.
#include "src/base/instructions.h"
#include "src/compression/codec_kernels.h"

namespace tutti {

CodecKernelList codec_kernels() {
  static const CodecKernels kernels[] = {kCodecScalar, kCodecBaseline, kCodecAvx2, kCodecAvx512};
  return {kernels, 2 + static_cast<std::uint32_t>(widest_instructions())};
}

}  // namespace tutti
