// 128-bit vectors in GNU notation, for every CPU.
#pragma once

#include "src/base/vector.h"

namespace tutti {
namespace {  // Anonymous, so that kernels stay inside the file compiled with the flags for them.

struct Baseline {
  static constexpr unsigned kBytes = 16;

  template <typename Narrow>
  TUTTI_KERNEL static Vector<std::uint32_t, 4> words(Narrow x) {
    return converted<std::uint32_t, std::remove_cvref_t<decltype(x[0])>, 4>(x);
  }
  template <typename T>
  TUTTI_KERNEL static Vector<Bits<T>, 4> packed(Vector<std::uint32_t, 4> x) {
    return converted<Bits<T>, std::uint32_t, 4>(x);
  }
  template <typename T, unsigned kLanes>
  TUTTI_KERNEL static Vector<float, kLanes> widened(Vector<Bits<T>, kLanes> bits) {
    return widened_portably<T, kLanes>(bits);
  }
  template <typename T, unsigned kLanes>
  TUTTI_KERNEL static Vector<float, kLanes> widened_finite(Vector<Bits<T>, kLanes> bits) {
    return widened<T, kLanes>(bits);
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
}  // namespace tutti
