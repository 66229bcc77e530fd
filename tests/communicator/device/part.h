// Buffers and expected results of one rank in a collective on a device.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {

inline constexpr std::uint64_t kSeed = 20261121;

struct CallShape {
  Problem problem;
  std::uint64_t count;
  std::uint32_t turn;  // Makes the data of calls differ.
};

inline std::int64_t element(const CallShape& shape, Rank rank, std::uint64_t i) {
  return static_cast<std::int64_t>((rank * 7919 + i * 31 + i / 5 + shape.turn * 104729) % 10007);
}

// Input element from which element i of a rank's output is copied. Reductions combine this element of all ranks.
struct Origin {
  Rank rank;
  std::uint64_t element;
};
inline Origin origin(const CallShape& shape, Rank rank, std::uint64_t i) {
  const auto block = static_cast<Rank>(i / shape.count);
  const std::uint64_t own = rank * shape.count + i % shape.count;
  switch (shape.problem.collective) {
    case Collective::all_gather:
    case Collective::gather: return {block, i % shape.count};
    case Collective::all_to_all: return {block, own};
    case Collective::broadcast: return {shape.problem.root, i};
    case Collective::scatter: return {shape.problem.root, own};
    case Collective::reduce_scatter: return {rank, own};
    default: return {rank, i};
  }
}

inline std::int64_t expected(const CallShape& shape, Rank rank, std::uint64_t i) {
  const Origin from = origin(shape, rank, i);
  if (!reduces(shape.problem.collective)) return element(shape, from.rank, from.element);
  std::int64_t sum = 0;
  for (Rank r = 0; r < shape.problem.ranks; ++r) sum += element(shape, r, from.element);
  return sum;
}

// Buffers of one rank in a call.
class Part {
 public:
  Part(DeviceRanks& ranks, Rank rank, const CallShape& shape, bool in_place) : shape_(shape), rank_(rank) {
    const std::uint64_t inputs = input_blocks(shape.problem, rank) * shape.count;
    outputs_ = output_blocks(shape.problem, rank) * shape.count;
    const std::int64_t shift = in_place_shift(shape.problem, rank) * static_cast<std::int64_t>(shape.count);
    if (in_place && inputs > 0 && outputs_ > 0) {
      auto* both = ranks.take<std::int64_t>(std::max(inputs, outputs_), -1);
      input_ = both + std::max<std::int64_t>(shift, 0);
      output_ = input_ - shift;
    } else {
      input_ = ranks.take<std::int64_t>(inputs, -1);
      output_ = ranks.take<std::int64_t>(outputs_, -1);
    }
    for (std::uint64_t i = 0; i < inputs; ++i) input_[i] = element(shape, rank, i);
  }

  Call call() const {
    Call call = call_of(shape_.problem.collective, DataType::int64, shape_.count, input_, output_);
    call.root = shape_.problem.root;
    return call;
  }

  // Returns an error in the output, or an empty string.
  std::string error() const {
    for (std::uint64_t i = 0; i < outputs_; ++i) {
      const std::int64_t wanted = expected(shape_, rank_, i);
      if (output_[i] == wanted) continue;
      return describe(shape_.problem) + ", rank " + std::to_string(rank_) + ", element " + std::to_string(i) + " of " +
             std::to_string(outputs_) + " is " + std::to_string(output_[i]) + ", not " + std::to_string(wanted) +
             ", seed " + std::to_string(kSeed);
    }
    return "";
  }
  void expect_right() const { ASSERT_EQ(error(), ""); }

 private:
  CallShape shape_;
  Rank rank_;
  std::int64_t* input_ = nullptr;
  std::int64_t* output_ = nullptr;
  std::uint64_t outputs_ = 0;
};

// Returns calls of every collective with many elements (several chunks), with some, and with one.
inline std::vector<CallShape> shapes_of(Rank ranks, std::mt19937_64& random) {
  constexpr Collective kAll[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                 Collective::broadcast,  Collective::reduce,     Collective::all_to_all,
                                 Collective::gather,     Collective::scatter};
  std::vector<CallShape> all;
  struct Counts {
    std::uint64_t min, many;
  };
  for (const Counts counts : {Counts{9000, 9000}, Counts{2, 900}, Counts{1, 1}}) {
    for (const Collective collective : kAll) {
      const std::uint64_t count = counts.min + random() % counts.many;
      Problem problem{.collective = collective, .ranks = ranks, .groups = {}};
      if (has_root(collective)) problem.root = static_cast<Rank>(random() % ranks);
      all.push_back({problem, count, static_cast<std::uint32_t>(all.size())});
    }
  }
  return all;
}

}  // namespace tutti::test
