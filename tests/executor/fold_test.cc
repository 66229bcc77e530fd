// Every type, reduction and instruction set against one element at a time, bit by bit.
#include "src/executor/cpu/fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "src/base/numeric.h"

namespace tutti::test {
namespace {

// Vector kernels store their results back to memory, the C library does not.
TEST(CachePolicy, StoresBack_WhenDataIsReadBeforeOverwritten) {
  const CachePolicy cache_policy = {.stored_back_bytes = 3072, .libc_copies_bytes = 4096};
  EXPECT_FALSE(cache_policy.stores_back(3071));
  EXPECT_TRUE(cache_policy.stores_back(1 << 20));
  EXPECT_TRUE(cache_policy.of_copies().stores_back(4095));
  EXPECT_FALSE(cache_policy.of_copies().stores_back(4096));
  EXPECT_FALSE(CachePolicy{}.of_copies().stores_back(1 << 20));
}

// ---- One element at a time ----

template <typename T>
auto number(T element) {
  if constexpr (is_narrow_float<T>) {
    return to_float(element);
  } else {
    return element;
  }
}

template <typename T, typename Number>
T rounded(Number value) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
  } else if constexpr (requires { value.imaginary; }) {
    return {rounded<decltype(value.real)>(value.real), rounded<decltype(value.real)>(value.imaginary)};
  } else {
    return static_cast<T>(value);
  }
}

// Wraps without overflow: in unsigned 64-bit arithmetic, of which the low bits remain.
template <typename Number>
using Wide = std::conditional_t<std::is_integral_v<Number>, std::uint64_t, Number>;

template <typename Number>
bool before(Number a, Number b) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
  }
  return a < b;
}

template <typename Number>
bool is_nan(Number x) {
  return x != x;
}

template <typename Number>
Number combined(Reduction reduction, Number a, Number b) {
  switch (reduction) {
    case Reduction::prod: return static_cast<Number>(Wide<Number>(a) * Wide<Number>(b));
    case Reduction::min: return is_nan(a) ? a : is_nan(b) || before(b, a) ? b : a;
    case Reduction::max: return is_nan(a) ? a : is_nan(b) || before(a, b) ? b : a;
    case Reduction::band:
    case Reduction::bor:
    case Reduction::bxor:
      if constexpr (std::is_integral_v<Number>) {
        if (reduction == Reduction::band) return static_cast<Number>(a & b);
        return static_cast<Number>(reduction == Reduction::bor ? a | b : a ^ b);
      }
      return a;
    default: return static_cast<Number>(Wide<Number>(a) + Wide<Number>(b));
  }
}

Bool combined(Reduction reduction, Bool a, Bool b) {
  const bool x = a.bits != 0, y = b.bits != 0;
  switch (reduction) {
    case Reduction::prod:
    case Reduction::min:
    case Reduction::band: return {x && y};
    case Reduction::bxor: return {x != y};
    default: return {x || y};
  }
}

template <typename T>
Complex<T> product(Complex<T> a, Complex<T> b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

template <typename T>
Complex<T> combined(Reduction reduction, Complex<T> a, Complex<T> b) {
  if (reduction == Reduction::prod) return product(a, b);
  return {a.real + b.real, a.imaginary + b.imaginary};
}

template <typename Number>
Number scaled(Number value, const FoldArguments& a) {
  if constexpr (std::is_integral_v<Number>) {
    return static_cast<Number>(Wide<Number>(value) * static_cast<std::uint64_t>(a.integer_scale));
  } else if constexpr (requires { value.imaginary; }) {
    using Part = decltype(value.real);
    return product(value, {static_cast<Part>(a.scale), static_cast<Part>(a.imaginary_scale)});
  } else if constexpr (std::is_floating_point_v<Number>) {
    return value * static_cast<Number>(a.scale);
  } else {
    return value;
  }
}

template <typename Number>
Number divided(Number value, std::uint32_t ranks) {
  if constexpr (requires { value.imaginary; }) {
    return {divided(value.real, ranks), divided(value.imaginary, ranks)};
  } else if constexpr (std::is_arithmetic_v<Number>) {
    return static_cast<Number>(value / static_cast<Number>(ranks));
  } else {
    return value;
  }
}

bool copies(Reduction reduction, const FoldArguments& a) {
  if (a.source_count > 1) return false;
  if (reduction == Reduction::avg) return !a.complete || a.ranks == 1;
  return reduction != Reduction::pre_mul_sum || a.own == FoldArguments::kNone;
}

// Min and max of numbers select an operand, so the reference neither rounds nor truncates.
template <typename T>
T selected(Reduction reduction, const std::vector<T>& elements) {
  std::size_t best = 0;
  for (std::size_t s = 1; s < elements.size(); ++s) {
    const auto old = number(elements[best]);
    const auto next = number(elements[s]);
    const bool ahead = reduction == Reduction::min ? before(next, old) : before(old, next);
    if (!is_nan(old) && (is_nan(next) || ahead)) best = s;
  }
  return is_nan(number(elements[best])) ? rounded<T>(number(elements[best])) : elements[best];
}

template <typename T>
T expected(Reduction reduction, const FoldArguments& a, const std::vector<T>& elements) {
  using Number = decltype(number(T{}));
  if (copies(reduction, a)) return elements[0];
  if constexpr (std::is_arithmetic_v<Number>) {
    if (reduction == Reduction::min || reduction == Reduction::max) return selected(reduction, elements);
  }
  Number result{};
  for (std::size_t s = 0; s < elements.size(); ++s) {
    Number value = number(elements[s]);
    if (reduction == Reduction::pre_mul_sum && s == a.own) value = scaled(value, a);
    result = s == 0 ? value : combined(reduction, result, value);
  }
  if (reduction == Reduction::avg && a.complete) result = divided(result, a.ranks);
  return rounded<T>(result);
}

// ---- Random folds ----

constexpr std::size_t kMargin = 64;  // Guard bytes on either side of an operand.

class Area {
 public:
  Area(std::size_t bytes, std::mt19937& random) : bytes_(bytes), memory_(bytes + 4 * kMargin) {
    const std::size_t to_line = -reinterpret_cast<std::uintptr_t>(memory_.data()) % kMargin;
    const std::size_t shifts[] = {0, random() % kMargin, random() % kMargin / 8 * 8};
    offset_ = kMargin + to_line + shifts[random() % 3];
    for (std::byte& b : memory_) b = static_cast<std::byte>(random());
    before_ = memory_;
  }
  std::byte* data() { return memory_.data() + offset_; }
  const std::byte* original() const { return before_.data() + offset_; }
  bool margins_untouched() const {
    return std::equal(memory_.begin(), memory_.begin() + offset_, before_.begin()) &&
           std::equal(memory_.begin() + offset_ + bytes_, memory_.end(), before_.begin() + offset_ + bytes_);
  }
  void write(std::size_t at, const void* from, std::size_t bytes) {
    std::memcpy(data() + at, from, bytes);
    std::memcpy(before_.data() + offset_ + at, from, bytes);
  }

 private:
  std::size_t bytes_;
  std::size_t offset_ = 0;
  std::vector<std::byte> memory_, before_;
};

// Sums of random bits are rarely of similar magnitude; sums of small numbers are.
template <typename T>
T small_number(std::mt19937& random) {
  const int value = static_cast<int>(random() % 64) - 32;
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(static_cast<float>(value) / 8);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value) / 8;
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {value > 0};
  } else if constexpr (requires(T number) { number.imaginary; }) {
    using Part = decltype(T::real);
    return {static_cast<Part>(value) / 8, small_number<Part>(random)};
  } else {
    return static_cast<T>(value);
  }
}

struct Shape {
  Reduction reduction;
  std::uint32_t sources, targets;
  std::uint64_t count;
};

template <typename T>
void check_fold(const FoldKernels& kernels, DataType type, const Shape& shape, std::mt19937& random) {
  std::vector<Area> areas;
  for (std::uint32_t i = 0; i < shape.sources + shape.targets; ++i) areas.emplace_back(shape.count * sizeof(T), random);
  for (std::uint64_t i = 0; i < shape.count; ++i) {
    if (random() % 2 == 0 && !std::is_same_v<T, Bool>) continue;
    for (std::uint32_t s = 0; s < shape.sources; ++s) {
      const T value = small_number<T>(random);
      areas[s].write(i * sizeof(T), &value, sizeof(T));
    }
  }
  // The first targets may be in place, with sources other than the first.
  const std::uint32_t in_place = std::min<std::uint32_t>(random() % 3, std::min(shape.sources, shape.targets));
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
  for (std::uint32_t s = 0; s < shape.sources; ++s) sources.push_back(areas[s].data());
  for (std::uint32_t t = 0; t < shape.targets; ++t) {
    targets.push_back(areas[t < in_place ? shape.sources - 1 - t : shape.sources + t].data());
  }
  const FoldArguments arguments{
      .sources = sources.data(),
      .targets = targets.data(),
      .source_count = shape.sources,
      .target_count = shape.targets,
      .count = shape.count,
      .own = random() % 4 == 0 ? FoldArguments::kNone : static_cast<std::uint32_t>(random()) % shape.sources,
      .complete = random() % 4 != 0,
      .ranks = 1 + static_cast<std::uint32_t>(random()) % 9,
      .scale = -1.625,
      .imaginary_scale = 0.375,
      .integer_scale = -0x123456789abcdef,
      .streamed_targets = random() % 3 == 0 ? random() : 0};
  kernels.find_fold(type, shape.reduction)(arguments);
  for (std::uint64_t i = 0; i < shape.count; ++i) {
    std::vector<T> elements(shape.sources);
    for (std::uint32_t s = 0; s < shape.sources; ++s)
      std::memcpy(&elements[s], areas[s].original() + i * sizeof(T), sizeof(T));
    const T wanted = expected<T>(shape.reduction, arguments, elements);
    for (const std::byte* target : targets) {
      ASSERT_EQ(std::memcmp(target + i * sizeof(T), &wanted, sizeof(T)), 0)
          << "element " << i << " of " << shape.count << ", in place " << in_place << ", own " << arguments.own
          << ", complete " << arguments.complete << ", ranks " << arguments.ranks << ", streamed "
          << arguments.streamed_targets;
    }
  }
  for (const Area& area : areas) ASSERT_TRUE(area.margins_untouched());
}

using Parameter = std::tuple<std::uint32_t, std::uint32_t>;  // Kernels, data type.

class Fold : public testing::TestWithParam<Parameter> {
 protected:
  const FoldKernels& kernels() const { return fold_kernels().first[std::get<0>(GetParam())]; }
  DataType type() const { return static_cast<DataType>(std::get<1>(GetParam())); }

  void check(const Shape& shape, std::mt19937& random) const {
    SCOPED_TRACE(std::string(name(shape.reduction)) + " " + std::to_string(shape.sources) + " to " +
                 std::to_string(shape.targets));
    visit(type(), [&]<typename T>(Type<T>) { check_fold<T>(kernels(), type(), shape, random); });
  }
};

TEST_P(Fold, EqualsReferenceInEveryBit) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (std::uint32_t reduction = 0; reduction < kReductions; ++reduction) {
    for (std::uint32_t sources = 1; sources <= 5; ++sources) {
      for (std::uint32_t targets = 1; targets <= 3; ++targets) {
        for (const std::uint64_t max : {0u, 1u, 16u, 16u, 100u, 700u}) {
          if (!supports(type(), static_cast<Reduction>(reduction))) continue;
          check({static_cast<Reduction>(reduction), sources, targets, random() % (max + 1)}, random);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Short folds consist of chunks of powers of two; the test covers each sum of chunks.
TEST_P(Fold, EqualsReference_ForEveryCount) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (std::uint64_t count = 0; count <= 300 && !HasFailure(); ++count) check({Reduction::sum, 2, 2, count}, random);
}

std::string test_name(const testing::TestParamInfo<Parameter>& info) {
  return std::string(fold_kernels().first[std::get<0>(info.param)].name) + "_" +
         name(static_cast<DataType>(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(All, Fold,
                         testing::Combine(testing::Range(0u, fold_kernels().count), testing::Range(0u, kDataTypes)),
                         test_name);

TEST(Copy, KeepsEveryBit_AndTouchesNothingElse) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (std::size_t bytes = 0; bytes < 1000; ++bytes) {
    Area from(bytes, random);
    Area to(bytes, random);
    const std::byte* source = from.data();
    std::byte* target = to.data();
    find_fold(DataType::uint8, Reduction::sum)(
        {.sources = &source, .targets = &target, .source_count = 1, .target_count = 1, .count = bytes});
    ASSERT_EQ(std::memcmp(source, target, bytes), 0) << bytes;
    ASSERT_TRUE(to.margins_untouched()) << bytes;
  }
}

TEST(FindFold, ReturnsWidestSupportedKernels) {
  const FoldKernelList list = fold_kernels();
  ASSERT_GE(list.count, 1u);
  const FoldKernels& widest = list.first[list.count - 1];
  EXPECT_EQ(find_fold(DataType::float32, Reduction::sum), widest.find_fold(DataType::float32, Reduction::sum));
}

}  // namespace
}  // namespace tutti::test
