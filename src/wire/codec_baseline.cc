// What every CPU can do: 128-bit registers in GNU's notation.
#include "src/wire/codec_kernel.h"

namespace tutti {
namespace {

struct Baseline {
  static constexpr unsigned kBytes = 16;
};

}  // namespace

const CodecKernels kCodecBaseline = {"baseline", find_codec_in<Baseline>};

}  // namespace tutti
