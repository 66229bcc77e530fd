// The kernels of one source file each.
#pragma once

#include "src/executor/cpu/fold.h"

namespace tutti {

// Of memory of 16 bits none: sums go through memory.
WireSumFunction find_wire_sum_baseline(WireFormat format, DataType memory);
WireSumFunction find_wire_sum_avx2(WireFormat format, DataType memory);
WireSumFunction find_wire_sum_avx512(WireFormat format, DataType memory);

extern const FoldKernels kFoldBaseline;
extern const FoldKernels kFoldAvx2;    // On x86.
extern const FoldKernels kFoldAvx512;  // On x86.

}  // namespace tutti
