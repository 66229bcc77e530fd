#include "src/wire/codec.h"

#include "src/wire/codec_kernels.h"

namespace tutti {

Codec find_codec(WireFormat format) {
  TUTTI_ASSERT(format != WireFormat::none);
  const CodecKernelList list = codec_kernels();
  return list.first[list.count - 1].find_codec(format);
}

}  // namespace tutti
