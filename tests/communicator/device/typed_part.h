// Buffers and expected results of one rank in a collective with any type and reduction. Numbers are few and small, so
// that every type represents the exact result in any order of evaluation.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>

#include "src/executor/numeric_reduce.h"
#include "tests/communicator/device/part.h"

namespace tutti::test {

struct TypedShape {
  CallShape shape;
  DataType type = DataType::float32;
  Reduction reduction = Reduction::sum;
};

inline bool is_float(DataType type) {
  return visit(type, []<typename T>(Type<T>) { return Format<T>::is_float; });
}

// Returns a rank's factor of a pre-multiplied sum.
inline int factor(Rank rank) {
  constexpr int kFactors[] = {2, 1, -1, 1};
  return kFactors[rank % 4];
}

// Returns a rank's contribution to a reduction. 8-bit floats have at most 4 significant bits, so numbers are small.
inline std::int64_t number(const TypedShape& shape, Rank rank, std::uint64_t i) {
  std::uint64_t word = (i * 64 + rank + 1) * 0x9e3779b97f4a7c15ULL + shape.shape.turn;
  word = (word ^ (word >> 29)) * 0xbf58476d1ce4e5b9ULL;
  const auto any = static_cast<std::int64_t>(word >> 40);
  if (shape.type == DataType::boolean) return any % 2;
  switch (shape.reduction) {
    case Reduction::sum: return any % 3 - 1;
    case Reduction::prod: return any % 3 == 2 ? -1 : any % 3 + 1;
    case Reduction::min:
    case Reduction::max: return is_float(shape.type) ? any % 17 - 8 : any % 201 - 100;
    case Reduction::avg: return is_float(shape.type) ? any % 2 : any % 16;
    case Reduction::band:
    case Reduction::bor:
    case Reduction::bxor: return any % 251 - 125;
    case Reduction::pre_mul_sum: return any % 2;
  }
  return 0;
}

// Returns the number in the type; integers are truncated. The imaginary part of a complex number is the negative of the
// real part, which holds for sums and averages too.
template <typename T>
T value_of(double number) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(static_cast<float>(number));
  } else if constexpr (Format<T>::is_float) {
    return static_cast<T>(number);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {number != 0};
  } else if constexpr (requires(T value) { value.imaginary; }) {
    using Real = decltype(T::real);
    return {static_cast<Real>(number), Real{0} - static_cast<Real>(number)};
  } else {
    return static_cast<T>(static_cast<std::int64_t>(number));
  }
}

inline double bitwise(Reduction reduction, double a, double b) {
  const auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
  if (reduction == Reduction::band) return static_cast<double>(x & y);
  return static_cast<double>(reduction == Reduction::bor ? x | y : x ^ y);
}

// Converts the number for comparison in the order of the type: for unsigned types, -1 is the largest.
template <typename T>
auto ordered(double number) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(number));
  } else {
    return number;
  }
}

template <typename T>
double reduced(const TypedShape& shape, std::uint64_t element) {
  const bool scales = shape.reduction == Reduction::pre_mul_sum;
  auto all = static_cast<double>(number(shape, 0, element) * (scales ? factor(0) : 1));
  for (Rank rank = 1; rank < shape.shape.problem.ranks; ++rank) {
    const auto one = static_cast<double>(number(shape, rank, element));
    switch (shape.reduction) {
      case Reduction::sum:
      case Reduction::avg: all += one; break;
      case Reduction::prod: all *= one; break;
      case Reduction::min: all = ordered<T>(one) < ordered<T>(all) ? one : all; break;
      case Reduction::max: all = ordered<T>(one) > ordered<T>(all) ? one : all; break;
      case Reduction::band:
      case Reduction::bor:
      case Reduction::bxor: all = bitwise(shape.reduction, all, one); break;
      case Reduction::pre_mul_sum: all += one * factor(rank); break;
    }
  }
  return shape.reduction == Reduction::avg ? all / shape.shape.problem.ranks : all;
}

// Returns an input element. Collectives that only move data use arbitrary bits.
template <typename T>
T input_value(const TypedShape& shape, Rank rank, std::uint64_t i) {
  if (reduces(shape.shape.problem.collective)) return value_of<T>(static_cast<double>(number(shape, rank, i)));
  const auto word = static_cast<std::uint64_t>(element(shape.shape, rank, i)) * 0x9e3779b97f4a7c15ULL;
  const std::uint64_t words[] = {word >> 8, word};
  T value;
  std::memcpy(&value, words, sizeof value);
  return value;
}

template <typename T>
T output_value(const TypedShape& shape, Rank rank, std::uint64_t i) {
  const Origin from = origin(shape.shape, rank, i);
  if (!reduces(shape.shape.problem.collective)) return input_value<T>(shape, from.rank, from.element);
  return value_of<T>(reduced<T>(shape, from.element));
}

// Memory that the rank's stream and the host can access. begin_anew() frees all of it for the next batch of calls.
class TypedMemory {
 public:
  explicit TypedMemory(DeviceRanks& ranks, std::size_t bytes) : memory_(ranks.take<std::byte>(bytes)), bytes_(bytes) {}
  void begin_anew() { taken_ = 0; }
  // Returns memory that is aligned for each type, but not to the access width of a device.
  std::byte* take(std::size_t bytes) {
    std::byte* chunk = memory_ + taken_;
    taken_ += (bytes + 2 * sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t) * sizeof(std::uint64_t);
    TUTTI_ASSERT(taken_ <= bytes_);
    return chunk;
  }

 private:
  std::byte* memory_;
  std::size_t bytes_;
  std::size_t taken_ = 0;
};

class TypedPart {
 public:
  TypedPart(TypedMemory& memory, Rank rank, const TypedShape& shape, bool in_place) : shape_(shape), rank_(rank) {
    const Problem& problem = shape.shape.problem;
    const std::size_t block = shape.shape.count * size_of(shape.type);
    const std::uint64_t inputs = input_blocks(problem, rank) * shape.shape.count;
    outputs_ = output_blocks(problem, rank) * shape.shape.count;
    const std::size_t input_bytes = inputs * size_of(shape.type);
    const std::size_t output_bytes = outputs_ * size_of(shape.type);
    const std::int64_t shift = in_place_shift(problem, rank) * static_cast<std::int64_t>(block);
    if (in_place && inputs > 0 && outputs_ > 0) {
      std::byte* both = memory.take(std::max(input_bytes, output_bytes));
      std::memset(both, 0x5a, std::max(input_bytes, output_bytes));
      input_ = both + std::max<std::int64_t>(shift, 0);
      output_ = input_ - shift;
    } else {
      input_ = memory.take(input_bytes);
      output_ = memory.take(output_bytes);
      std::memset(output_, 0x5a, output_bytes);
    }
    visit(shape.type, [&]<typename T>(Type<T>) {
      for (std::uint64_t i = 0; i < inputs; ++i) put(input_, i, input_value<T>(shape_, rank_, i));
    });
  }

  Call call() const {
    Call call = call_of(shape_.shape.problem.collective, shape_.type, shape_.shape.count, input_, output_);
    call.root = shape_.shape.problem.root;
    call.reduction = shape_.reduction;
    call.scalar = factor(rank_);
    call.integer_scalar = factor(rank_);
    return call;
  }

  // Returns an error in the output, or an empty string.
  std::string error() const {
    return visit(shape_.type, [&]<typename T>(Type<T>) -> std::string {
      for (std::uint64_t i = 0; i < outputs_; ++i) {
        const std::byte* found = output_ + i * sizeof(T);
        const T wanted = output_value<T>(shape_, rank_, i);
        if (std::memcmp(found, &wanted, sizeof wanted) == 0) continue;
        return describe(shape_.shape.problem) + ", " + name(shape_.reduction) + " of " + name(shape_.type) + ", rank " +
               std::to_string(rank_) + ": element " + std::to_string(i) + " of " + std::to_string(outputs_) +
               " has the bytes " + hex(found, sizeof(T)) + ", not " + hex(&wanted, sizeof wanted);
      }
      return "";
    });
  }

 private:
  template <typename T>
  static void put(std::byte* to, std::uint64_t i, T value) {
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
  static std::string hex(const void* bytes, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(bytes)[i]);
      text += digits;
    }
    return text;
  }

  TypedShape shape_;
  Rank rank_;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::uint64_t outputs_ = 0;
};

}  // namespace tutti::test
