// What every CPU can do: 128-bit registers in GNU's notation.
#include "src/executor/cpu/fold_kernel.h"
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {
namespace {

struct Baseline {
  static constexpr unsigned kBytes = 16;

  template <typename T, unsigned kLanes>
  TUTTI_KERNEL static Vector<float, kLanes> widened(Vector<Bits<T>, kLanes> bits) {
    return widened_portably<T, kLanes>(bits);
  }
  template <typename T, unsigned kLanes>
  TUTTI_KERNEL static Vector<Bits<T>, kLanes> narrowed(Vector<float, kLanes> value) {
    return narrowed_portably<T, kLanes>(value);
  }
  template <typename Register>
  TUTTI_KERNEL static void stream(const Register& value, std::byte* to) {
    std::memcpy(to, &value, sizeof value);
  }
  static void fence() {}
  TUTTI_KERNEL static void prepare(const std::byte* line) { __builtin_prefetch(line, 1); }
};

}  // namespace

const FoldKernels kFoldBaseline = {"baseline", find_fold_in<Baseline>};

}  // namespace tutti
