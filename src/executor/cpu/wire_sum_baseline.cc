// What every CPU can do: 128-bit registers in GNU's notation.
#include "src/base/vector_baseline.h"
#include "src/executor/cpu/fold_kernels.h"
#include "src/executor/cpu/wire_sum_kernel.h"

namespace tutti {

WireSumFunction find_wire_sum_baseline(WireFormat format) { return find_wire_sum_in<Baseline>(format); }

}  // namespace tutti
