// The kernels of one source file each.
#pragma once

#include "src/executor/cpu/fold.h"

namespace tutti {

extern const FoldKernels kFoldBaseline;
extern const FoldKernels kFoldAvx2;    // On x86.
extern const FoldKernels kFoldAvx512;  // On x86.

}  // namespace tutti
