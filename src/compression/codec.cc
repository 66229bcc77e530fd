#include "src/compression/codec.h"

#include "src/compression/codec_kernels.h"

namespace tutti {

Codec find_codec(CompressionFormat format) {
  TUTTI_ASSERT(format != CompressionFormat::none);
  const CodecKernelList list = codec_kernels();
  return list.first[list.count - 1].find_codec(format);
}

}  // namespace tutti
