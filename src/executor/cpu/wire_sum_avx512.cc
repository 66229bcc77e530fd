// AVX-512 with F, BW, VL and DQ.
#include "src/base/vector_avx512.h"
#include "src/executor/cpu/fold_kernels.h"
#include "src/executor/cpu/wire_sum_kernel.h"
#include "src/wire/packing_x86.h"

namespace tutti {

WireSumFunction find_wire_sum_avx512(WireFormat format) { return find_wire_sum_in<Avx512>(format); }

}  // namespace tutti
