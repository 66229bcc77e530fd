// Comparisons and logic of predicates. setp has the slots p, q (or none), a, b, c (or none).
#include "tests/ptx/machine/compute.h"
#include "tests/ptx/machine/half.h"

namespace tutti::ptx {
namespace {

template <typename T>
bool equal(T a, T b) {
  return a == b;
}
template <typename T>
bool unequal(T a, T b) {
  return a < b || a > b;
}  // False for NaN.
template <typename T>
bool less(T a, T b) {
  return a < b;
}
template <typename T>
bool at_most(T a, T b) {
  return a <= b;
}
template <typename T>
bool greater(T a, T b) {
  return a > b;
}
template <typename T>
bool at_least(T a, T b) {
  return a >= b;
}
template <typename T>
bool numbers(T a, T b) {
  return a == a && b == b;
}
template <auto kCompare, typename T>
bool or_nan(T a, T b) {
  return !numbers(a, b) || kCompare(a, b);
}
template <typename T>
bool any_nan(T a, T b) {
  return !numbers(a, b);
}

std::uint32_t combine(const Lanes& lanes, const Instruction& in, std::uint32_t compared) {
  const std::uint32_t other = in.action == 0 ? 0 : *lanes.in<std::uint32_t>(in.r[4]);
  switch (in.action) {
    case 1: return compared & other;
    case 2: return compared | other;
    case 3: return compared ^ other;
    default: return compared;
  }
}

void put(const Lanes& lanes, std::int32_t slot, std::uint32_t bits) {
  std::uint32_t* const predicate = lanes.out<std::uint32_t>(slot);
  *predicate = (*predicate & ~lanes.mask) | (bits & lanes.mask);
}

template <auto kCompare, typename T>
void set_predicate(const Lanes& lanes, const Instruction& in) {
  const SlotOf<T>* const a = lanes.in<SlotOf<T>>(in.r[2]);
  const SlotOf<T>* const b = lanes.in<SlotOf<T>>(in.r[3]);
  std::uint32_t compared = 0;
  for (unsigned i = 0; i < 32; ++i)
    compared |= static_cast<std::uint32_t>(kCompare(from_slot<T>(a[i]), from_slot<T>(b[i]))) << i;
  put(lanes, in.r[0], combine(lanes, in, compared));
  if (in.has_predicate) put(lanes, in.r[1], combine(lanes, in, ~compared));
}

template <auto kCompare, typename T>
void add_one(Computations& to, const std::string& comparison, const std::string& type) {
  to.add("setp." + comparison + "." + type,
         {set_predicate<kCompare, T>,
          2,
          {Width::predicate, Width::predicate, width_of<T>(), width_of<T>(), Width::predicate}});
}

template <typename T>
void add_ordered(Computations& to, const std::string& type) {
  add_one<equal<T>, T>(to, "eq", type);
  add_one<unequal<T>, T>(to, "ne", type);
  add_one<less<T>, T>(to, "lt", type);
  add_one<at_most<T>, T>(to, "le", type);
  add_one<greater<T>, T>(to, "gt", type);
  add_one<at_least<T>, T>(to, "ge", type);
  add_one<less<T>, T>(to, "lo", type);
  add_one<at_most<T>, T>(to, "ls", type);
  add_one<greater<T>, T>(to, "hi", type);
  add_one<at_least<T>, T>(to, "hs", type);
}

template <typename T>
void add_unordered(Computations& to, const std::string& type) {
  add_one<or_nan<equal<T>, T>, T>(to, "equ", type);
  add_one<or_nan<unequal<T>, T>, T>(to, "neu", type);
  add_one<or_nan<less<T>, T>, T>(to, "ltu", type);
  add_one<or_nan<at_most<T>, T>, T>(to, "leu", type);
  add_one<or_nan<greater<T>, T>, T>(to, "gtu", type);
  add_one<or_nan<at_least<T>, T>, T>(to, "geu", type);
  add_one<numbers<T>, T>(to, "num", type);
  add_one<any_nan<T>, T>(to, "nan", type);
}

template <int kOperation>
void logic(const Lanes& lanes, const Instruction& in) {
  const std::uint32_t a = *lanes.in<std::uint32_t>(in.r[1]);
  const std::uint32_t b = kOperation < 3 ? *lanes.in<std::uint32_t>(in.r[2]) : 0;
  const std::uint32_t results[] = {a & b, a | b, a ^ b, ~a, a};
  put(lanes, in.r[0], results[kOperation]);
}

template <int kOperation>
void add_logic(Computations& to, const std::string& name) {
  Computation computation = {logic<kOperation>, 1, {Width::predicate, Width::predicate}};
  if (kOperation < 3) computation.operands.push_back(Width::predicate);
  to.add(name + ".pred", computation);
}

}  // namespace

void add_comparisons(Computations& to) {
  for (const char* const kind : {"b", "u"}) {
    add_ordered<std::uint16_t>(to, kind + std::string("16"));
    add_ordered<std::uint32_t>(to, kind + std::string("32"));
    add_ordered<std::uint64_t>(to, kind + std::string("64"));
  }
  add_ordered<std::int16_t>(to, "s16");
  add_ordered<std::int32_t>(to, "s32");
  add_ordered<std::int64_t>(to, "s64");
  add_ordered<float>(to, "f32");
  add_ordered<double>(to, "f64");
  add_unordered<float>(to, "f32");
  add_unordered<double>(to, "f64");
  add_ordered<Float16Bits>(to, "f16");
  add_unordered<Float16Bits>(to, "f16");
  add_ordered<BFloat16Bits>(to, "bf16");
  add_unordered<BFloat16Bits>(to, "bf16");
  add_logic<0>(to, "and");
  add_logic<1>(to, "or");
  add_logic<2>(to, "xor");
  add_logic<3>(to, "not");
  add_logic<4>(to, "mov");
}

const Computations& Computations::all() {
  static const Computations& made = *[] {  // Static destructors may load kernels.
    auto* all = new Computations;
    add_integers(*all);
    add_bits(*all);
    add_floats(*all);
    add_half_arithmetic(*all);
    add_conversions(*all);
    add_comparisons(*all);
    return all;
  }();
  return made;
}

const Computation* Computations::find(const std::string& opcode) const {
  const auto found = by_name_.find(opcode);
  return found == by_name_.end() ? nullptr : &found->second;
}

}  // namespace tutti::ptx
