#include "perf/rounding/data.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "src/base/numeric.h"
#include "src/compression/format.h"

namespace tutti::rounding {
namespace {

constexpr std::uint64_t kRow = 1024;  // Elements of gradients with the same magnitude.
constexpr Rank kAll = ~Rank{0};       // Stream of random numbers that all ranks share.

// SplitMix64 by S. Vigna; gives the same data on all machines.
std::uint64_t hash(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  return word ^ word >> 31;
}

class Random {
 public:
  Random(std::uint64_t seed, Rank rank) : state_(hash(hash(seed) + rank)) {}

  std::uint64_t word() { return hash(state_ += 0x9e3779b97f4a7c15); }
  double uniform() { return (static_cast<double>(word() >> 11) + 0.5) * 0x1p-53; }  // In (0, 1).
  float sign() { return (word() & 1) != 0 ? 1.0f : -1.0f; }

  // G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958. Generates two at a time.
  double normal() {
    if (has_other_) {
      has_other_ = false;
      return other_;
    }
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * 3.14159265358979323846 * uniform();
    other_ = radius * std::sin(angle);
    has_other_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::uint64_t state_;
  double other_ = 0;
  bool has_other_ = false;
};

float largest_of(DataType type) {
  if (type == DataType::float16) return 65504;
  return type == DataType::bfloat16 ? 0x1.fep127f : std::numeric_limits<float>::max();
}

float denormal_of(DataType type, std::uint64_t word) {
  const auto bits = static_cast<std::uint32_t>(word);
  const std::uint32_t sign = bits & 0x80000000u;
  if (type == DataType::float16) return to_float(Float16{static_cast<std::uint16_t>(sign >> 16 | (bits & 0x3ff))});
  return std::bit_cast<float>(sign | (bits & (type == DataType::bfloat16 ? 0x7f0000u : 0x7fffffu)));
}

double student(Random& random) {
  const double normal = random.normal();
  double squares = 0;
  for (int degree = 0; degree < 3; ++degree) {
    const double other = random.normal();
    squares += other * other;
  }
  return normal / std::sqrt(squares / 3);
}

// Returns true for one pseudo-random element of each group.
bool is_chosen(std::uint64_t seed, Rank rank, std::uint64_t i) {
  return hash(hash(seed + i / kCompressionGroup) ^ rank) % kCompressionGroup == i % kCompressionGroup;
}

// Groups cycle through a NaN, +infinity, -infinity, both infinities on two ranks, and four unchanged groups.
float not_finite(const Terms& terms, Rank rank, std::uint64_t i, float value) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const std::uint64_t group = i / kCompressionGroup;
  const auto first = static_cast<Rank>(group / 8 % terms.ranks);
  if (!is_chosen(terms.seed, 0, i)) return value;
  if (group % 8 == 3 && rank == (first + 1) % terms.ranks) return -kInfinite;
  if (rank != first) return value;
  switch (group % 8) {
    case 0: return std::numeric_limits<float>::quiet_NaN();
    case 1: return kInfinite;
    case 2: return -kInfinite;
    case 3: return kInfinite;
    default: return value;
  }
}

class Source {
 public:
  Source(const Terms& terms, Rank rank)
      : terms_(terms), rank_(rank), own_(terms.seed, rank), shared_(terms.seed, kAll) {}

  double next(std::uint64_t i) {
    switch (terms_.data) {
      case Data::gaussian: return own_.normal();
      case Data::laplace: return -std::log(own_.uniform()) * own_.sign();
      case Data::student: return student(own_);
      case Data::outlier: return own_.normal() * (is_chosen(terms_.seed, rank_, i) ? 1000 : 1);
      case Data::zero: return 0;
      case Data::single: return is_chosen(terms_.seed, 0, i) ? own_.normal() : 0;
      case Data::denormal: return denormal_of(terms_.type, own_.word());
      case Data::largest: return i % terms_.ranks == rank_ ? own_.sign() * largest_of(terms_.type) : 0;
      case Data::not_finite: return not_finite(terms_, rank_, i, static_cast<float>(own_.normal()));
      case Data::identical: return shared_.normal();
      case Data::cancelling: return cancelling();
      case Data::gradient: return gradient(i);
    }
    return 0;
  }

 private:
  double cancelling() {
    const double value = pair_.normal();
    const double rest = own_.normal() / 1000;
    return rank_ % 2 == 1 ? rest - value : rank_ + 1 < terms_.ranks ? value : rest;
  }

  double gradient(std::uint64_t i) {
    if (i % kRow == 0) {
      size_ = 1e-4 * std::exp2(2 * shared_.normal());
      if (shared_.uniform() < 0.1) size_ = 0;
    }
    return size_ * (shared_.normal() + own_.normal()) / 2;
  }

  const Terms& terms_;
  Rank rank_;
  Random own_;
  Random shared_;
  Random pair_{terms_.seed + 1, rank_ / 2};
  double size_ = 0;
};

}  // namespace

const char* name(Data data) {
  constexpr const char* names[kDataKinds] = {"gaussian",   "laplace",   "student",    "outlier",
                                             "zero",       "single",    "denormal",   "largest",
                                             "not_finite", "identical", "cancelling", "gradient"};
  return names[static_cast<std::uint32_t>(data)];
}

Result<Data> parse_data(std::string_view text) {
  std::string known;
  for (std::uint32_t i = 0; i < kDataKinds; ++i) {
    const auto data = static_cast<Data>(i);
    if (text == name(data)) return data;
    known += (i == 0 ? "" : ", ") + std::string(name(data));
  }
  return invalid_argument("'" + std::string(text) + "' is not a kind of data; valid: " + known);
}

float held(DataType type, float value) {
  if (type == DataType::float16) return to_float(from_float<Float16>(value));
  return type == DataType::bfloat16 ? to_float(from_float<BFloat16>(value)) : value;
}

std::vector<float> numbers(const Terms& terms, Rank rank, std::uint64_t count) {
  Source source(terms, rank);
  std::vector<float> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = held(terms.type, static_cast<float>(source.next(i)));
  return values;
}

}  // namespace tutti::rounding
