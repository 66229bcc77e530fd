// Instructions that compute registers from registers, by name.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "tests/ptx/machine/code.h"

namespace tutti::ptx {

struct Computation {
  Compute run = nullptr;
  std::uint8_t results = 1;  // The first operands.
  std::vector<Width> operands;
};

class Computations {
 public:
  static const Computations& all();
  const Computation* find(const std::string& opcode) const;
  void add(const std::string& opcode, Computation computation) { by_name_[opcode] = std::move(computation); }

 private:
  std::unordered_map<std::string, Computation> by_name_;
};

void add_integers(Computations& to);
void add_bits(Computations& to);
void add_floats(Computations& to);
void add_half_arithmetic(Computations& to);
void add_conversions(Computations& to);
void add_comparisons(Computations& to);

struct Float16Bits {
  std::uint16_t bits;
};
struct BFloat16Bits {
  std::uint16_t bits;
};

template <typename T>
using SlotOf = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;

template <std::size_t kBytes>
using BitsOf = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

template <typename T>
T from_slot(SlotOf<T> slot) {
  return std::bit_cast<T>(static_cast<BitsOf<sizeof(T)>>(slot));
}
template <typename T>
SlotOf<T> to_slot(T value) {
  return std::bit_cast<BitsOf<sizeof(T)>>(value);
}

template <typename T>
constexpr Width width_of() {
  return sizeof(T) <= 4 ? Width::bits32 : Width::bits64;
}

// NaN results of 32-bit arithmetic are canonical, as on GPUs.
template <typename T>
T canonical(T value) {
  if constexpr (std::is_same_v<T, float>) {
    if (value != value) return std::bit_cast<float>(0x7fffffffU);
  }
  return value;
}

template <auto kDo, typename R, typename A>
void compute1(const Lanes& lanes, const Instruction& in) {
  SlotOf<R>* const result = lanes.out<SlotOf<R>>(in.r[0]);
  const SlotOf<A>* const a = lanes.in<SlotOf<A>>(in.r[1]);
  lanes.each([=](unsigned i) { result[i] = to_slot<R>(kDo(from_slot<A>(a[i]))); });
}

template <auto kDo, typename R, typename A, typename B>
void compute2(const Lanes& lanes, const Instruction& in) {
  SlotOf<R>* const result = lanes.out<SlotOf<R>>(in.r[0]);
  const SlotOf<A>* const a = lanes.in<SlotOf<A>>(in.r[1]);
  const SlotOf<B>* const b = lanes.in<SlotOf<B>>(in.r[2]);
  lanes.each([=](unsigned i) { result[i] = to_slot<R>(kDo(from_slot<A>(a[i]), from_slot<B>(b[i]))); });
}

template <auto kDo, typename R, typename A, typename B, typename C>
void compute3(const Lanes& lanes, const Instruction& in) {
  SlotOf<R>* const result = lanes.out<SlotOf<R>>(in.r[0]);
  const SlotOf<A>* const a = lanes.in<SlotOf<A>>(in.r[1]);
  const SlotOf<B>* const b = lanes.in<SlotOf<B>>(in.r[2]);
  const SlotOf<C>* const c = lanes.in<SlotOf<C>>(in.r[3]);
  lanes.each(
      [=](unsigned i) { result[i] = to_slot<R>(kDo(from_slot<A>(a[i]), from_slot<B>(b[i]), from_slot<C>(c[i]))); });
}

template <auto kDo, typename R, typename A>
Computation unary() {
  return {compute1<kDo, R, A>, 1, {width_of<R>(), width_of<A>()}};
}
template <auto kDo, typename R, typename A, typename B>
Computation binary() {
  return {compute2<kDo, R, A, B>, 1, {width_of<R>(), width_of<A>(), width_of<B>()}};
}
template <auto kDo, typename R, typename A, typename B, typename C>
Computation ternary() {
  return {compute3<kDo, R, A, B, C>, 1, {width_of<R>(), width_of<A>(), width_of<B>(), width_of<C>()}};
}

}  // namespace tutti::ptx
