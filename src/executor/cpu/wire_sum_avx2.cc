// AVX2 and F16C.
#include "src/base/vector_avx2.h"
#include "src/executor/cpu/fold_kernels.h"
#include "src/executor/cpu/wire_sum_kernel.h"
#include "src/wire/packing_x86.h"

namespace tutti {

WireSumFunction find_wire_sum_avx2(WireFormat format) { return find_wire_sum_in<Avx2>(format); }

}  // namespace tutti
