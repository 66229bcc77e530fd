// Logic, shifts, bit fields, selections and moves.
#include <algorithm>

#include "tests/ptx/machine/compute.h"

namespace tutti::ptx {
namespace {

template <typename T>
T and_of(T a, T b) {
  return static_cast<T>(a & b);
}
template <typename T>
T or_of(T a, T b) {
  return static_cast<T>(a | b);
}
template <typename T>
T xor_of(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <typename T>
T not_of(T a) {
  return static_cast<T>(~a);
}
template <typename T>
T zero_test(T a) {  // cnot
  return a == 0 ? T{1} : T{0};
}
template <typename T>
T same_of(T a) {
  return a;
}
template <typename T>
T shift_left(T a, std::uint32_t by) {
  return by < 8 * sizeof(T) ? static_cast<T>(static_cast<std::uint64_t>(a) << by) : T{0};
}
template <typename T>
T shift_right(T a, std::uint32_t by) {
  return by < 8 * sizeof(T) ? static_cast<T>(a >> by) : T{0};
}
template <typename T>
std::uint32_t count_ones(T a) {
  return static_cast<std::uint32_t>(std::popcount(a));
}
template <typename T>
std::uint32_t leading_zeros(T a) {
  return static_cast<std::uint32_t>(std::countl_zero(a));
}
template <typename T>
T reverse(T a) {
  T result = 0;
  for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit)
    result = static_cast<T>(result | (((a >> bit) & 1) << (8 * sizeof(T) - 1 - bit)));
  return result;
}
template <typename T>
std::uint32_t highest_bit(T a) {  // bfind
  using Plain = std::make_unsigned_t<T>;
  const auto bits = static_cast<Plain>(a < 0 ? ~a : a);
  return bits == 0 ? ~0U : static_cast<std::uint32_t>(8 * sizeof(T) - 1) - leading_zeros(bits);
}
template <typename T>
T extract(T a, std::uint32_t position, std::uint32_t length) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  using Plain = std::make_unsigned_t<T>;
  if (length == 0) return 0;
  const std::uint32_t top = std::min(position + length - 1, kBits - 1);
  const bool sign = std::is_signed_v<T> && ((static_cast<Plain>(a) >> top) & 1) != 0;
  Plain field = position < kBits ? static_cast<Plain>(static_cast<Plain>(a) >> position) : Plain{0};
  const std::uint32_t taken = position < kBits ? std::min(length, kBits - position) : 0;
  if (taken < kBits) {
    const Plain mask = static_cast<Plain>((Plain{1} << taken) - 1);
    field = static_cast<Plain>(sign ? field | ~mask : field & mask);
  }
  return static_cast<T>(field);
}
template <typename T>
T make_mask(std::uint32_t position, std::uint32_t length) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  const T ones = length >= kBits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
  return position >= kBits ? T{0} : static_cast<T>(ones << position);
}
std::uint32_t funnel_left(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  by &= 31;
  return by == 0 ? high : high << by | low >> (32 - by);
}
std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  by &= 31;
  return by == 0 ? low : high << (32 - by) | low >> by;
}
std::uint32_t funnel_left_clamped(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  return by >= 32 ? low : funnel_left(low, high, by);
}
std::uint32_t funnel_right_clamped(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  return by >= 32 ? high : funnel_right(low, high, by);
}
std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(b) << 32 | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t chosen = selector >> (4 * i) & 0xf;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (chosen & 7))) & 0xff;
    if ((chosen & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// bfi: inserts `a` into `b`.
template <typename T>
void insert_field(const Lanes& lanes, const Instruction& in) {
  T* const result = lanes.out<T>(in.r[0]);
  const T* const a = lanes.in<T>(in.r[1]);
  const T* const b = lanes.in<T>(in.r[2]);
  const std::uint32_t* const position = lanes.in<std::uint32_t>(in.r[3]);
  const std::uint32_t* const length = lanes.in<std::uint32_t>(in.r[4]);
  lanes.each([=](unsigned i) {
    const std::uint32_t at = position[i] & 0xff;
    const T mask = make_mask<T>(at, length[i] & 0xff);
    result[i] = (b[i] & ~mask) | (shift_left<T>(a[i], at) & mask);
  });
}

// lop3: the truth table is an immediate.
void logic3(const Lanes& lanes, const Instruction& in) {
  std::uint32_t* const result = lanes.out<std::uint32_t>(in.r[0]);
  const std::uint32_t* const a = lanes.in<std::uint32_t>(in.r[1]);
  const std::uint32_t* const b = lanes.in<std::uint32_t>(in.r[2]);
  const std::uint32_t* const c = lanes.in<std::uint32_t>(in.r[3]);
  const std::uint32_t table = *lanes.in<std::uint32_t>(in.r[4]);
  lanes.each([=](unsigned i) {
    std::uint32_t bits = 0;
    for (unsigned row = 0; row < 8; ++row) {
      if ((table >> row & 1) == 0) continue;
      bits |= ((row & 4) != 0 ? a[i] : ~a[i]) & ((row & 2) != 0 ? b[i] : ~b[i]) & ((row & 1) != 0 ? c[i] : ~c[i]);
    }
    result[i] = bits;
  });
}

template <typename T>
void select(const Lanes& lanes, const Instruction& in) {
  T* const result = lanes.out<T>(in.r[0]);
  const T* const a = lanes.in<T>(in.r[1]);
  const T* const b = lanes.in<T>(in.r[2]);
  const std::uint32_t chosen = *lanes.in<std::uint32_t>(in.r[3]);
  lanes.each([=](unsigned i) { result[i] = (chosen >> i & 1) != 0 ? a[i] : b[i]; });
}

template <typename Part>
void pack(const Lanes& lanes, const Instruction& in) {
  using Whole = BitsOf<2 * sizeof(Part)>;
  SlotOf<Whole>* const result = lanes.out<SlotOf<Whole>>(in.r[0]);
  const SlotOf<Part>* const low = lanes.in<SlotOf<Part>>(in.r[1]);
  const SlotOf<Part>* const high = lanes.in<SlotOf<Part>>(in.r[2]);
  lanes.each([=](unsigned i) {
    result[i] = static_cast<SlotOf<Whole>>(static_cast<Part>(low[i])) |
                static_cast<SlotOf<Whole>>(static_cast<Part>(high[i])) << (8 * sizeof(Part));
  });
}

template <typename Part>
void unpack(const Lanes& lanes, const Instruction& in) {
  using Whole = BitsOf<2 * sizeof(Part)>;
  SlotOf<Part>* const low = lanes.out<SlotOf<Part>>(in.r[0]);
  SlotOf<Part>* const high = lanes.out<SlotOf<Part>>(in.r[1]);
  const SlotOf<Whole>* const whole = lanes.in<SlotOf<Whole>>(in.r[2]);
  lanes.each([=](unsigned i) {
    const auto bits = static_cast<Whole>(whole[i]);
    low[i] = static_cast<Part>(bits);
    high[i] = static_cast<Part>(bits >> (8 * sizeof(Part)));
  });
}

void pack_pair(const Lanes& lanes, const Instruction& in) {
  std::uint64_t* const result = lanes.out<std::uint64_t>(in.r[0]);
  const std::uint64_t* const low = lanes.in<std::uint64_t>(in.r[1]);
  const std::uint64_t* const high = lanes.in<std::uint64_t>(in.r[2]);
  lanes.each([=](unsigned i) {
    result[i] = low[i];
    result[32 + i] = high[i];
  });
}

void unpack_pair(const Lanes& lanes, const Instruction& in) {
  std::uint64_t* const low = lanes.out<std::uint64_t>(in.r[0]);
  std::uint64_t* const high = lanes.out<std::uint64_t>(in.r[1]);
  const std::uint64_t* const whole = lanes.in<std::uint64_t>(in.r[2]);
  lanes.each([=](unsigned i) {
    low[i] = whole[i];
    high[i] = whole[32 + i];
  });
}

// Four bytes or two halves of 64 bits: mov.b32 {b, b, b, b} and mov.b64 {h, h, h, h}.
template <typename Part>
void pack4(const Lanes& lanes, const Instruction& in) {
  using Whole = BitsOf<4 * sizeof(Part)>;
  Whole* const result = lanes.out<Whole>(in.r[0]);
  lanes.each([&](unsigned i) {
    Whole bits = 0;
    for (unsigned n = 0; n < 4; ++n)
      bits |= static_cast<Whole>(static_cast<Part>(lanes.in<std::uint32_t>(in.r[1 + n])[i])) << (8 * sizeof(Part) * n);
    result[i] = bits;
  });
}
template <typename Part>
void unpack4(const Lanes& lanes, const Instruction& in) {
  using Whole = BitsOf<4 * sizeof(Part)>;
  const Whole* const whole = lanes.in<Whole>(in.r[4]);
  lanes.each([&](unsigned i) {
    const Whole bits = whole[i];
    for (unsigned n = 0; n < 4; ++n)
      lanes.out<std::uint32_t>(in.r[n])[i] = static_cast<Part>(bits >> (8 * sizeof(Part) * n));
  });
}

template <typename T>
void add_type(Computations& to, const std::string& type) {
  to.add("and." + type, binary<and_of<T>, T, T, T>());
  to.add("or." + type, binary<or_of<T>, T, T, T>());
  to.add("xor." + type, binary<xor_of<T>, T, T, T>());
  to.add("not." + type, unary<not_of<T>, T, T>());
  to.add("cnot." + type, unary<zero_test<T>, T, T>());
  to.add("shl." + type, binary<shift_left<T>, T, T, std::uint32_t>());
  to.add("shr." + type, binary<shift_right<T>, T, T, std::uint32_t>());
}

template <typename T>
void add_copies(Computations& to, const std::string& type) {
  to.add("mov." + type, unary<same_of<T>, T, T>());
  to.add("selp." + type, {select<SlotOf<T>>, 1, {width_of<T>(), width_of<T>(), width_of<T>(), Width::predicate}});
}

template <typename T>
void add_fields(Computations& to, const std::string& bits) {
  using Signed = std::make_signed_t<T>;
  const Width width = width_of<T>();
  to.add("popc.b" + bits, unary<count_ones<T>, std::uint32_t, T>());
  to.add("clz.b" + bits, unary<leading_zeros<T>, std::uint32_t, T>());
  to.add("brev.b" + bits, unary<reverse<T>, T, T>());
  to.add("bfind.u" + bits, unary<highest_bit<T>, std::uint32_t, T>());
  to.add("bfind.s" + bits, unary<highest_bit<Signed>, std::uint32_t, Signed>());
  to.add("bfe.u" + bits, ternary<extract<T>, T, T, std::uint32_t, std::uint32_t>());
  to.add("bfe.s" + bits, ternary<extract<Signed>, Signed, Signed, std::uint32_t, std::uint32_t>());
  to.add("bfi.b" + bits, {insert_field<T>, 1, {width, width, width, Width::bits32, Width::bits32}});
}

void add_packing(Computations& to) {
  constexpr Width k32 = Width::bits32, k64 = Width::bits64, k128 = Width::bits128;
  to.add("pack2.b16", {pack<std::uint8_t>, 1, {k32, k32, k32}});
  to.add("pack2.b32", {pack<std::uint16_t>, 1, {k32, k32, k32}});
  to.add("pack2.b64", {pack<std::uint32_t>, 1, {k64, k32, k32}});
  to.add("pack2.b128", {pack_pair, 1, {k128, k64, k64}});
  to.add("unpack2.b16", {unpack<std::uint8_t>, 2, {k32, k32, k32}});
  to.add("unpack2.b32", {unpack<std::uint16_t>, 2, {k32, k32, k32}});
  to.add("unpack2.b64", {unpack<std::uint32_t>, 2, {k32, k32, k64}});
  to.add("unpack2.b128", {unpack_pair, 2, {k64, k64, k128}});
  to.add("pack4.b32", {pack4<std::uint8_t>, 1, {k32, k32, k32, k32, k32}});
  to.add("pack4.b64", {pack4<std::uint16_t>, 1, {k64, k32, k32, k32, k32}});
  to.add("unpack4.b32", {unpack4<std::uint8_t>, 4, {k32, k32, k32, k32, k32}});
  to.add("unpack4.b64", {unpack4<std::uint16_t>, 4, {k32, k32, k32, k32, k64}});
}

}  // namespace

void add_bits(Computations& to) {
  add_type<std::uint16_t>(to, "b16");
  add_type<std::uint32_t>(to, "b32");
  add_type<std::uint64_t>(to, "b64");
  for (const char* kind : {"b", "u", "s", "f"}) {
    add_copies<std::uint16_t>(to, kind + std::string("16"));
    add_copies<std::uint32_t>(to, kind + std::string("32"));
    add_copies<std::uint64_t>(to, kind + std::string("64"));
  }
  add_fields<std::uint32_t>(to, "32");
  add_fields<std::uint64_t>(to, "64");
  add_packing(to);
  to.add("bmsk.clamp.b32", binary<make_mask<std::uint32_t>, std::uint32_t, std::uint32_t, std::uint32_t>());
  to.add("prmt.b32", ternary<permute, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>());
  constexpr Width k32 = Width::bits32;
  to.add("lop3.b32", {logic3, 1, {k32, k32, k32, k32, k32}});
  using U = std::uint32_t;
  to.add("shf.l.wrap.b32", ternary<funnel_left, U, U, U, U>());
  to.add("shf.r.wrap.b32", ternary<funnel_right, U, U, U, U>());
  to.add("shf.l.clamp.b32", ternary<funnel_left_clamped, U, U, U, U>());
  to.add("shf.r.clamp.b32", ternary<funnel_right_clamped, U, U, U, U>());
}

}  // namespace tutti::ptx
