// float16 and bfloat16 against the same computation in long double, which holds products exactly, and the error of
// sums.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "tests/ptx/instruction.h"

namespace tutti::ptx {
namespace {

using HalfBits = std::uint16_t;
using HalfPair = std::uint32_t;
using Real = long double;

constexpr HalfBits kNan = 0x7fff;

struct HalfFormat {
  std::string name;
  int fraction_bits;
  int bias;

  HalfBits infinity() const { return static_cast<HalfBits>((2 * bias + 1) << fraction_bits); }
  bool is_nan(HalfBits bits) const { return (bits & 0x7fff) > infinity(); }

  Real value(HalfBits bits) const {
    const int fraction = bits & ((1 << fraction_bits) - 1), exponent = (bits & 0x7fff) >> fraction_bits;
    const int scale = -fraction_bits - bias;
    if (is_nan(bits)) return std::numeric_limits<Real>::quiet_NaN();
    if ((bits & 0x7fff) == infinity()) return (bits & 0x8000) != 0 ? -HUGE_VALL : HUGE_VALL;
    const Real magnitude = exponent == 0 ? std::ldexp(static_cast<Real>(fraction), 1 + scale)
                                         : std::ldexp(fraction + std::ldexp(1.0L, fraction_bits), exponent + scale);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }

  // Searches the value that is nearest to exact + rest, or the even one of two. `rest` is less than a unit in the last
  // place of `exact`. The value after the largest one, 2 to the power bias + 1, is infinity.
  HalfBits nearest(Real exact, Real rest = 0) const {
    if (exact != exact) return kNan;
    const auto value_below_infinity = [&](HalfBits bits) {
      return bits == infinity() ? std::ldexp(1.0L, bias + 1) : value(bits);
    };
    const Real magnitude = std::fabs(exact);
    HalfBits low = 0, high = infinity();  // value(low) <= magnitude
    while (high - low > 1) {
      const auto middle = static_cast<HalfBits>((low + high) / 2);
      (value_below_infinity(middle) <= magnitude ? low : high) = middle;
    }
    const Real below = magnitude - value(low), above = value_below_infinity(high) - magnitude;
    const bool is_low = below != above ? below < above
                        : rest != 0    ? std::signbit(rest) != std::signbit(exact)
                                       : low % 2 == 0;
    const HalfBits chosen = is_low ? low : high;
    return static_cast<HalfBits>(chosen | (std::signbit(exact) ? 0x8000U : 0U));
  }
  HalfBits nearest_sum(Real a, Real b) const {
    const Real sum = a + b, part = sum - a, rest = (a - (sum - part)) + (b - part);
    return nearest(sum, std::isfinite(sum) ? rest : 0);
  }
};
const HalfFormat kFormats[] = {{"f16", 10, 15}, {"bf16", 7, 127}};

// Zero, the smallest and largest subnormals, numbers, infinity and NaN, with both signs.
std::vector<HalfBits> special_values(const HalfFormat& format) {
  const auto one = static_cast<HalfBits>(format.bias << format.fraction_bits);
  const auto normal = static_cast<HalfBits>(1 << format.fraction_bits);
  const auto min_nan = static_cast<HalfBits>(format.infinity() + 1);
  std::vector<HalfBits> values;
  for (const HalfBits bits :
       {HalfBits{0}, HalfBits{1}, static_cast<HalfBits>(normal - 1), normal, static_cast<HalfBits>(one - 1), one,
        static_cast<HalfBits>(one + 1), static_cast<HalfBits>(one + 3 * normal / 2),
        static_cast<HalfBits>(format.infinity() - 1), format.infinity(), min_nan, kNan}) {
    values.push_back(bits);
    values.push_back(static_cast<HalfBits>(bits | 0x8000));
  }
  return values;
}

std::vector<HalfBits> all_values() {
  std::vector<HalfBits> values(65536);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<HalfBits>(i);
  return values;
}

// Operand `place` of all combinations of `count` special values.
std::vector<HalfBits> operand_of_all(const HalfFormat& format, int place, int count) {
  const std::vector<HalfBits> special = special_values(format);
  std::size_t all = 1, below = 1;
  for (int i = 0; i < count; ++i) all *= special.size();
  for (int i = 0; i < place; ++i) below *= special.size();
  std::vector<HalfBits> values(all);
  for (std::size_t i = 0; i < all; ++i) values[i] = special[i / below % special.size()];
  return values;
}

// Each value, with the one of another thread in the high half.
std::vector<HalfPair> pairs_of(const std::vector<HalfBits>& values) {
  std::vector<HalfPair> pairs;
  for (std::size_t i = 0; i < values.size(); ++i)
    pairs.push_back(HalfPair{values[(i + values.size() / 3) % values.size()]} << 16 | values[i]);
  return pairs;
}

// NaN results of arithmetic are canonical; those of neg and abs may be any NaN.
enum class Nan { canonical, any };

struct Check {
  const HalfFormat& format;
  std::string opcode;
  Nan nan = Nan::canonical;

  void expect(const std::vector<HalfBits>& results, const std::vector<HalfBits>& wanted) const {
    ASSERT_EQ(results.size(), wanted.size()) << opcode;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const bool both_nan = nan == Nan::any && format.is_nan(results[i]) && format.is_nan(wanted[i]);
      ASSERT_TRUE(both_nan || results[i] == wanted[i])
          << opcode << " of thread " << i << ": " << results[i] << " instead of " << wanted[i];
    }
  }

  // Checks the instruction and its form for pairs.
  template <typename F, typename... Operands>
  void run(F expected, const Operands&... operands) const {
    std::vector<HalfBits> wanted;
    for (std::size_t i = 0; i < std::max({operands.size()...}); ++i) wanted.push_back(expected(operands[i]...));
    expect(results_of<HalfBits>(instruction<HalfBits, typename Operands::value_type...>(opcode), operands...), wanted);
    const auto run_pairs = [&](const auto&... pairs) {
      return results_of<HalfPair>(
          instruction<HalfPair, typename std::decay_t<decltype(pairs)>::value_type...>(opcode + "x2"), pairs...);
    };
    std::vector<HalfBits> low, high, shifted;
    for (const HalfPair pair : run_pairs(pairs_of(operands)...)) {
      low.push_back(static_cast<HalfBits>(pair));
      high.push_back(static_cast<HalfBits>(pair >> 16));
    }
    expect(low, wanted);
    for (const HalfPair pair : pairs_of(wanted)) shifted.push_back(static_cast<HalfBits>(pair >> 16));
    expect(high, shifted);
  }
};

TEST(PtxHalf, ComputesSpecialValues_WithOneRounding) {
  for (const HalfFormat& format : kFormats) {
    const auto real = [&](HalfBits bits) { return format.value(bits); };
    const auto less = [&](HalfBits a, HalfBits b) {  // -0 is less than +0.
      return real(a) < real(b) || (real(a) == real(b) && std::signbit(real(a)) && !std::signbit(real(b)));
    };
    const auto minimum = [&](HalfBits a, HalfBits b) {
      if (format.is_nan(a)) return format.is_nan(b) ? kNan : b;
      return format.is_nan(b) || less(a, b) ? a : b;
    };
    const auto maximum = [&](HalfBits a, HalfBits b) {
      if (format.is_nan(a)) return format.is_nan(b) ? kNan : b;
      return format.is_nan(b) || less(b, a) ? a : b;
    };
    const auto any_nan = [&](HalfBits a, HalfBits b) { return format.is_nan(a) || format.is_nan(b); };
    const auto sum = [&](HalfBits a, HalfBits b) { return format.nearest_sum(real(a), real(b)); };
    const auto difference = [&](HalfBits a, HalfBits b) { return format.nearest_sum(real(a), -real(b)); };
    const auto product = [&](HalfBits a, HalfBits b) { return format.nearest(real(a) * real(b)); };
    const std::pair<const char*, std::function<HalfBits(HalfBits, HalfBits)>> cases[] = {
        {"add", sum},
        {"add.rn", sum},
        {"sub", difference},
        {"sub.rn", difference},
        {"mul", product},
        {"mul.rn", product},
        {"min", minimum},
        {"max", maximum},
        {"min.NaN", [&](HalfBits a, HalfBits b) { return any_nan(a, b) ? kNan : minimum(a, b); }},
        {"max.NaN", [&](HalfBits a, HalfBits b) { return any_nan(a, b) ? kNan : maximum(a, b); }},
    };
    const std::vector<HalfBits> left = operand_of_all(format, 0, 2), right = operand_of_all(format, 1, 2);
    for (const auto& [opcode, expected] : cases)
      Check{format, std::string(opcode) + "." + format.name}.run(expected, left, right);
    Check{format, "neg." + format.name, Nan::any}.run([](HalfBits a) { return static_cast<HalfBits>(a ^ 0x8000); },
                                                      all_values());
    Check{format, "abs." + format.name, Nan::any}.run([](HalfBits a) { return static_cast<HalfBits>(a & 0x7fff); },
                                                      all_values());
    Check{format, "fma.rn." + format.name}.run(
        [&](HalfBits a, HalfBits b, HalfBits c) { return format.nearest_sum(real(a) * real(b), real(c)); },
        operand_of_all(format, 0, 3), operand_of_all(format, 1, 3), operand_of_all(format, 2, 3));
  }
}

TEST(PtxHalf, Compares) {
  const std::pair<const char*, std::function<bool(Real, Real)>> cases[] = {
      {"eq", [](Real a, Real b) { return a == b; }},
      {"ne", [](Real a, Real b) { return a < b || a > b; }},
      {"lt", [](Real a, Real b) { return a < b; }},
      {"le", [](Real a, Real b) { return a <= b; }},
      {"gt", [](Real a, Real b) { return a > b; }},
      {"ge", [](Real a, Real b) { return a >= b; }},
      {"equ", [](Real a, Real b) { return !(a < b || a > b); }},
      {"neu", [](Real a, Real b) { return a != b; }},
      {"ltu", [](Real a, Real b) { return !(a >= b); }},
      {"leu", [](Real a, Real b) { return !(a > b); }},
      {"gtu", [](Real a, Real b) { return !(a <= b); }},
      {"geu", [](Real a, Real b) { return !(a < b); }},
      {"num", [](Real a, Real b) { return a == a && b == b; }},
      {"nan", [](Real a, Real b) { return a != a || b != b; }},
  };
  for (const HalfFormat& format : kFormats) {
    const std::vector<HalfBits> left = operand_of_all(format, 0, 2), right = operand_of_all(format, 1, 2);
    for (const auto& [comparison, expected] : cases) {
      const std::string opcode = std::string("setp.") + comparison + "." + format.name;
      const std::vector<HalfPair> results =
          results_of<HalfPair>(opcode + " %p1, %h1, %h2;\nselp.b32 %r10, 1, 0, %p1;", left, right);
      ASSERT_EQ(results.size(), left.size()) << opcode;
      for (std::size_t i = 0; i < results.size(); ++i)
        ASSERT_EQ(results[i] != 0, expected(format.value(left[i]), format.value(right[i])))
            << opcode << " of " << left[i] << " and " << right[i];
    }
  }
}

// Register for integers of type I. Results of 8 bits are extended to 16 bits.
template <typename I>
using RegisterFor =
    std::conditional_t<sizeof(I) == 8, std::uint64_t, std::conditional_t<sizeof(I) == 4, std::uint32_t, HalfBits>>;

// Calls body(I{}, name of I) for each integer type.
template <typename Body>
void for_integers(const Body& body) {
  body(std::int8_t{}, "s8");
  body(std::int16_t{}, "s16");
  body(std::int32_t{}, "s32");
  body(std::int64_t{}, "s64");
  body(std::uint8_t{}, "u8");
  body(std::uint16_t{}, "u16");
  body(std::uint32_t{}, "u32");
  body(std::uint64_t{}, "u64");
}

// NaN becomes 0, or the highest bit of 64.
template <typename I>
I saturated_whole(Real whole) {
  using Limits = std::numeric_limits<I>;
  if (whole != whole) return sizeof(I) == 8 ? static_cast<I>(std::uint64_t{1} << 63) : I{0};
  if (whole >= std::ldexp(1.0L, Limits::digits)) return Limits::max();
  return whole < static_cast<Real>(Limits::min()) ? Limits::min() : static_cast<I>(whole);
}

TEST(PtxHalf, ConvertsToIntegers) {
  const std::pair<const char*, Real (*)(Real)> roundings[] = {{"rni", [](Real a) { return std::nearbyint(a); }},
                                                              {"rzi", [](Real a) { return std::trunc(a); }},
                                                              {"rmi", [](Real a) { return std::floor(a); }},
                                                              {"rpi", [](Real a) { return std::ceil(a); }}};
  const std::vector<HalfBits> all = all_values();
  for (const HalfFormat& format : kFormats) {
    for (const auto& [rounding, round] : roundings) {
      for_integers([&, rounding = rounding, round = round]<typename I>(I, const std::string& integer) {
        using Register = RegisterFor<I>;
        const std::string opcode = "cvt." + std::string(rounding) + "." + integer + "." + format.name;
        const std::vector<Register> results = results_of<Register>(instruction<Register, HalfBits>(opcode), all);
        ASSERT_EQ(results.size(), all.size()) << opcode;
        for (std::size_t i = 0; i < all.size(); ++i)
          ASSERT_EQ(results[i], static_cast<Register>(saturated_whole<I>(round(format.value(all[i])))))
              << opcode << " of " << i;
      });
    }
  }
}

TEST(PtxHalf, ConvertsFromIntegers_WithOneRounding) {
  for_integers([]<typename I>(I, const std::string& integer) {
    using Register = RegisterFor<I>;
    std::vector<Register> values;
    for (int bit = 0; bit < std::numeric_limits<Register>::digits; ++bit) {
      const auto power = static_cast<Register>(Register{1} << bit);
      for (const Register low : {power >> 8, power >> 9, power >> 11, power >> 12, Register{1} + 0}) {
        const auto near = static_cast<Register>(low);
        for (const Register value : {power + near, power + near + 1, power + near - 1, power - near})
          values.push_back(static_cast<Register>(value));
      }
      values.push_back(static_cast<Register>(0 - power));
    }
    values.push_back(0);
    for (const HalfFormat& format : kFormats) {
      const std::string opcode = "cvt.rn." + format.name + "." + integer;
      const std::vector<HalfBits> results = results_of<HalfBits>(instruction<HalfBits, Register>(opcode), values);
      ASSERT_EQ(results.size(), values.size()) << opcode;
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(results[i], format.nearest(static_cast<Real>(static_cast<I>(values[i]))))
            << opcode << " of " << values[i];
    }
  });
}

TEST(PtxHalf, ConvertsToAndFromDouble) {
  const std::vector<HalfBits> all = all_values();
  for (const HalfFormat& format : kFormats) {
    const std::vector<double> wide = results_of<double>(instruction<double, HalfBits>("cvt.f64." + format.name), all);
    ASSERT_EQ(wide.size(), all.size());
    std::vector<double> between;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto wanted = static_cast<double>(format.value(all[i]));
      if (wanted != wanted) {
        ASSERT_TRUE(wide[i] != wide[i]) << i;
      } else {
        ASSERT_EQ(std::pair(wide[i], std::signbit(wide[i])), std::pair(wanted, std::signbit(wanted))) << i;
      }
      const double next = static_cast<double>(format.value(static_cast<HalfBits>(i + 1)));
      for (const double toward : {-HUGE_VAL, wanted, HUGE_VAL})
        between.push_back(std::nextafter((wanted + next) / 2, std::isnan(wanted) ? next : toward));
    }
    const std::string opcode = "cvt.rn." + format.name + ".f64";
    const std::vector<HalfBits> results = results_of<HalfBits>(instruction<HalfBits, double>(opcode), between);
    ASSERT_EQ(results.size(), between.size());
    for (std::size_t i = 0; i < between.size(); ++i)
      ASSERT_EQ(results[i], format.nearest(static_cast<Real>(between[i]))) << opcode << " of " << between[i];
  }
}

// (1 + 2^-7) * 1.5 lies between two values. A little less is nearer to the lower one, although no double shows that.
TEST(PtxHalf, FusesWithOneRounding) {
  Lab lab;
  HalfBits* const result = lab.make<HalfBits>(1);
  const auto fault = lab.run(kernel_text(".param .u64 out",
                                         "ld.param.u64 %d1, [out];\nmov.b16 %h1, 0x3f81;\nmov.b16 %h2, 0x3fc0;\n"
                                         "mov.b16 %h3, 0x8001;\nfma.rn.bf16 %h4, %h1, %h2, %h3;\n"
                                         "st.global.b16 [%d1], %h4;"),
                             {}, {}, result);
  ASSERT_FALSE(fault) << fault->text;
  EXPECT_EQ(*result, 0x3fc1);
}

}  // namespace
}  // namespace tutti::ptx
