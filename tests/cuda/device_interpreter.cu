// A kernel that obeys a program, and folds with the arithmetic that the host folds with: nvcc has to generate device
// code for the interpreter and all that it calls. Nothing runs; the test is that this compiles.
#include <cstdint>

#include "src/executor/interpreter.h"
#include "src/executor/numeric_reduce.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMostOperands = 8;
constexpr std::uint32_t kStageBytes = 512;

// Worker 0 of 1: a device's machine has many, but the interpreter sees one.
template <typename T, Reduction kReduction>
class DeviceMachine {
 public:
  TUTTI_HOST_DEVICE explicit DeviceMachine(std::byte* stage) : stage_(stage) {}

  TUTTI_HOST_DEVICE std::byte* stage(std::uint32_t operand) { return stage_ + operand * kStageBytes; }
  TUTTI_HOST_DEVICE bool plain() const { return true; }
  TUTTI_HOST_DEVICE void source(std::uint32_t index, std::byte* pointer) { sources_[index] = pointer; }
  TUTTI_HOST_DEVICE void target(std::uint32_t index, std::byte* pointer) { targets_[index] = pointer; }
  TUTTI_HOST_DEVICE void source(std::uint32_t index, std::byte* pointer, const Operand&) { source(index, pointer); }
  TUTTI_HOST_DEVICE void target(std::uint32_t index, std::byte* pointer, const Operand&) { target(index, pointer); }

  TUTTI_HOST_DEVICE void fold(std::uint32_t sources, std::uint32_t targets, std::uint64_t count, Fold) {
    using Reduced = Arithmetic<T, kReduction, Scalar>;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto value = Reduced::read(load(sources_[0], i));
      for (std::uint32_t k = 1; k < sources; ++k) value = Reduced::combine(value, Reduced::read(load(sources_[k], i)));
      for (std::uint32_t k = 0; k < targets; ++k) reinterpret_cast<Bits<T>*>(targets_[k])[i] = Reduced::write(value);
    }
  }

 private:
  TUTTI_HOST_DEVICE static Bits<T> load(const std::byte* from, std::uint64_t i) {
    return reinterpret_cast<const Bits<T>*>(from)[i];
  }

  std::byte* stage_;
  const std::byte* sources_[kMostOperands] = {};
  std::byte* targets_[kMostOperands] = {};
};

template <typename T, Reduction kReduction>
__global__ void run(Program program, Launch launch, std::byte** pointers, std::byte* stage, Progress* result) {
  using Machine = DeviceMachine<T, kReduction>;
  Interpreter<Machine> interpreter(program, launch, Machine(stage), pointers);
  for (*result = Progress::waiting; *result == Progress::waiting;) {
    *result = interpreter.advance();
    while (*result == Progress::waiting && !interpreter.blocked().over()) {
    }
  }
}

}  // namespace

// Every kind of arithmetic: integers, floats, floats that are summed in wider ones, and orders.
void launch_interpreters(const Program& program, const Launch& launch, std::byte** pointers, Progress* result) {
  std::byte* stage = pointers[0];
  run<std::int32_t, Reduction::sum><<<1, 1>>>(program, launch, pointers, stage, result);
  run<float, Reduction::prod><<<1, 1>>>(program, launch, pointers, stage, result);
  run<double, Reduction::sum><<<1, 1>>>(program, launch, pointers, stage, result);
  run<Float16, Reduction::sum><<<1, 1>>>(program, launch, pointers, stage, result);
  run<BFloat16, Reduction::sum><<<1, 1>>>(program, launch, pointers, stage, result);
  run<Float8E4M3, Reduction::sum><<<1, 1>>>(program, launch, pointers, stage, result);
  run<Float8E5M2, Reduction::max><<<1, 1>>>(program, launch, pointers, stage, result);
  run<std::uint8_t, Reduction::min><<<1, 1>>>(program, launch, pointers, stage, result);
}

}  // namespace tutti
