// Inputs of ranks for measuring compression errors: likely values, and hostile ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/base/types.h"

namespace tutti::rounding {

// Independent on each rank, unless said otherwise.
enum class Data : std::uint8_t {
  gaussian,
  laplace,
  student,     // Student's t with 3 degrees of freedom.
  outlier,     // Gaussian, and in each group one element that is 1000 times as large.
  zero,        // All of them.
  single,      // One element of each group, the same on all ranks, is not zero.
  denormal,    // Numbers below the least normal one of the type.
  largest,     // The largest number of the type, with either sign, from one rank; the others have zeros.
  not_finite,  // Gaussian; in half of the groups some rank has NaN or infinities.
  identical,   // Gaussian, the same on all ranks.
  cancelling,  // Gaussian; each second rank takes back what the one before has, but for a thousandth.
  gradient,    // Rows of very different size, some of them zeros; half of each number is the same on all ranks.
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

// Value that a tensor of the type stores.
float held(DataType type, float value);

// So many numbers of a rank, as the type holds them.
std::vector<float> numbers(const Terms& terms, Rank rank, std::uint64_t count);

}  // namespace tutti::rounding
