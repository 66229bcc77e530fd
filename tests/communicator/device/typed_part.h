// Buffers and expected results of one rank in a collective with any type and reduction. Numbers are few and small, so
// that every type represents the exact result in any order of evaluation.
#pragma once

#include <cmath>
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
  switch (shape.reduction) {
    case Reduction::sum: return any % 3 - 1;
    case Reduction::prod: return any % 3 == 2 ? -1 : any % 3 + 1;
    case Reduction::min:
    case Reduction::max: return is_float(shape.type) ? any % 17 - 8 : any % 201 - 100;
    case Reduction::avg: return is_float(shape.type) ? any % 2 : any % 16;
    case Reduction::pre_mul_sum: return any % 2;
  }
  return 0;
}

// Returns the bits of a number in the type; integers are truncated.
template <typename T>
Bits<T> bits_of(double number) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(static_cast<float>(number)).bits;
  } else if constexpr (Format<T>::is_float) {
    return __builtin_bit_cast(Bits<T>, static_cast<T>(number));
  } else {
    return static_cast<Bits<T>>(static_cast<std::int64_t>(number));
  }
}

// Converts the number for comparison in the order of the type: for unsigned types, -1 is the largest.
template <typename T>
auto ordered(double number) {
  if constexpr (Format<T>::is_float) {
    return number;
  } else {
    return static_cast<T>(static_cast<std::int64_t>(number));
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
      case Reduction::pre_mul_sum: all += one * factor(rank); break;
    }
  }
  return shape.reduction == Reduction::avg ? all / shape.shape.problem.ranks : all;
}

// Returns the bits of an input element. Collectives that only move data use arbitrary bits.
template <typename T>
Bits<T> input_bits(const TypedShape& shape, Rank rank, std::uint64_t i) {
  if (reduces(shape.shape.problem.collective)) return bits_of<T>(static_cast<double>(number(shape, rank, i)));
  return static_cast<Bits<T>>(static_cast<std::uint64_t>(element(shape.shape, rank, i)) * 0x9e3779b97f4a7c15ULL >> 8);
}

template <typename T>
Bits<T> output_bits(const TypedShape& shape, Rank rank, std::uint64_t i) {
  const Origin from = origin(shape.shape, rank, i);
  if (!reduces(shape.shape.problem.collective)) return input_bits<T>(shape, from.rank, from.element);
  return bits_of<T>(reduced<T>(shape, from.element));
}

// Memory that the rank's stream and the host can access. begin_anew() frees all of it for the next batch of calls.
class TypedMemory {
 public:
  explicit TypedMemory(DeviceRanks& ranks, std::size_t bytes) : memory_(ranks.take<std::byte>(bytes)), bytes_(bytes) {}
  void begin_anew() { taken_ = 0; }
  // Returns memory that is aligned to the largest type, but not to the access width of a device.
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
      for (std::uint64_t i = 0; i < inputs; ++i) put(input_, i, input_bits<T>(shape_, rank_, i));
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
  std::string complaint() const {
    return visit(shape_.type, [&]<typename T>(Type<T>) -> std::string {
      for (std::uint64_t i = 0; i < outputs_; ++i) {
        Bits<T> found;
        std::memcpy(&found, output_ + i * sizeof found, sizeof found);
        const Bits<T> wanted = output_bits<T>(shape_, rank_, i);
        if (found == wanted) continue;
        return describe(shape_.shape.problem) + ", " + name(shape_.reduction) + " of " + name(shape_.type) + ", rank " +
               std::to_string(rank_) + ": element " + std::to_string(i) + " of " + std::to_string(outputs_) +
               " has the bits " + std::to_string(found) + ", not " + std::to_string(wanted);
      }
      return "";
    });
  }

 private:
  template <typename B>
  static void put(std::byte* to, std::uint64_t i, B bits) {
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }

  TypedShape shape_;
  Rank rank_;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::uint64_t outputs_ = 0;
};

}  // namespace tutti::test
