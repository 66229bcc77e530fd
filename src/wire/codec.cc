#include "src/wire/codec.h"

#include "src/wire/codec_kernels.h"

namespace tutti {

// The least steps of the wide types keep what is decoded from being subnormal: no rank flushes what another does not.
WireRange range_of(DataType type) {
  switch (type) {
    case DataType::float16: return {65504.0f, 0x1p-22f, type};
    case DataType::bfloat16: return {0x1.fep127f, 0x1p-124f, type};
    case DataType::float32: return {0x1.fffffep127f, 0x1p-124f, type};
    default: break;
  }
  assertion_failed("a type that is encoded", __FILE__, __LINE__);
}

Codec find_codec(WireFormat format) {
  const CodecKernelList list = codec_kernels();
  return list.first[list.count - 1].find_codec(format);
}

}  // namespace tutti
