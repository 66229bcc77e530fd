// Memory of the ranks in the reference interpreter, and the callers, which own it between operations.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "src/plan/loop.h"
#include "src/plan/plan.h"

namespace tutti::test {

struct Value {
  std::uint64_t sum = 0;   // Sum modulo 2^64, which identifies the contributions in any order.
  std::uint64_t tree = 0;  // Hash of the expression. Equal hashes mean results with equal bits.
  bool operator==(const Value&) const = default;
};

Value folded(Value left, Value right);
Value premultiplied(Value value);
Value completed(Value value);

template <typename Visit>
void for_each_operand(const Step& step, Visit visit) {
  for (const auto side : {step.sources, step.targets}) {
    for (const Operand& operand : side) visit(operand);
  }
}

// Layout of a rank's units in its memory, for one chunk.
struct Geometry {
  std::uint32_t units = 1, elements = 1;  // Units and elements per block.
  std::uint32_t input_blocks = 0, output_blocks = 0;
  std::uint32_t input_base = 0, output_base = 0;  // First blocks of input and output, which overlap in place.
  std::uint32_t scratch_units = 0;

  std::uint32_t begin(std::uint32_t unit) const {  // First element of a unit, which is counted over all blocks.
    return unit / units * elements + static_cast<std::uint32_t>(std::uint64_t{unit % units} * elements / units);
  }
  std::uint32_t length(std::uint32_t unit) const { return begin(unit + 1) - begin(unit); }
  std::uint32_t blocks() const;
  bool holds(Space space, std::uint32_t unit) const;
};

class Callers {
 public:
  // `seed` determines the number of elements per block, and all values.
  Callers(std::span<const Plan> plans, const Loop& loop, std::uint64_t seed);

  const Geometry& geometry(Rank rank) const { return ranks_[rank].geometry; }
  Value& user(Rank rank, std::uint32_t chunk, Space space, std::uint32_t element);
  Value& scratch(Rank rank, std::uint32_t chunk, std::uint32_t element);

  std::uint32_t length_of(const Operand& memory) const;  // Number of elements.

  // These functions return an error or an empty string.
  std::string enter(Rank rank);  // Writes contributions to the input, and garbage to the output.
  std::string leave(Rank rank);  // Checks the results, then overwrites them and the input.
  std::string at_the_end(Rank rank) const;

 private:
  struct RankMemory {
    Geometry geometry;
    std::vector<Value> memory, scratch;
    std::vector<Value> as_left;  // Values that the caller wrote last.
    std::uint32_t operation = 0;
  };

  Value garbage() { return {random_(), random_()}; }
  void overwrite(RankMemory& state);
  std::uint64_t contribution(Rank rank, std::uint32_t operation, std::uint32_t chunk, std::uint32_t element) const;
  std::uint64_t expected(Rank rank, std::uint32_t chunk, std::uint32_t element) const;
  bool has_bits_of_others(Rank rank, std::uint32_t chunk, std::uint32_t element, const Value& value);

  std::span<const Plan> plans_;
  std::uint32_t chunks_, ring_;
  std::mt19937_64 random_;
  std::uint64_t secret_;
  std::vector<RankMemory> ranks_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> bits_;
};

}  // namespace tutti::test
