// The kernels of one source file each.
#pragma once

#include "src/executor/cpu/fold.h"

namespace tutti {

WireSumFunction find_wire_sum_baseline(WireFormat format);
WireSumFunction find_wire_sum_avx2(WireFormat format);
WireSumFunction find_wire_sum_avx512(WireFormat format);

extern const FoldKernels kFoldBaseline;
extern const FoldKernels kFoldAvx2;    // On x86.
extern const FoldKernels kFoldAvx512;  // On x86.

}  // namespace tutti
