// Inputs of ranks for measuring compression errors: typical and adversarial values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/base/types.h"

namespace tutti::rounding {

// Kinds of data. Ranks have independent values unless stated otherwise.
enum class Data : std::uint8_t {
  gaussian,
  laplace,
  student,     // Student's t with 3 degrees of freedom.
  outlier,     // Gaussian, except that one element per group is 1000 times as large.
  zero,        // All zeros.
  single,      // Zeros, except for one element per group, at the same index on all ranks.
  denormal,    // Subnormal numbers of the type.
  largest,     // Each element is +- the largest number of the type on one rank, and zero on the others.
  not_finite,  // Gaussian; in half of the groups some rank has NaN or infinities.
  identical,   // Gaussian, equal on all ranks.
  cancelling,  // Gaussian; odd ranks have the negated values of the previous rank, except for a thousandth.
  gradient,    // Rows of very different magnitude, some zero; half of each number is equal on all ranks.
};
inline constexpr std::uint32_t kDataKinds = 12;

const char* name(Data data);
Result<Data> parse_data(std::string_view text);

struct Terms {
  Data data = Data::gaussian;
  DataType type = DataType::float32;  // float32, float16 or bfloat16.
  Rank ranks = 1;
  std::uint64_t seed = 1;
};

// Rounds a value to the type of a tensor.
float held(DataType type, float value);

// Returns `count` numbers of a rank, rounded to the type.
std::vector<float> numbers(const Terms& terms, Rank rank, std::uint64_t count);

}  // namespace tutti::rounding
