// bool, complex types and bitwise reductions with every algorithm and protocol, against arithmetic on small integers,
// whose results are exact in any order.
#include <gtest/gtest.h>

#include <cstring>

#include "algorithms/catalogue.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/cases.h"

namespace tutti::test {
namespace {

struct TypedCase {
  Case shape;
  DataType type;
  Reduction reduction;
};

// Real and imaginary part; integers and bool have only the former.
struct SmallNumber {
  std::int64_t real = 0, imaginary = 0;
};

SmallNumber product(SmallNumber a, SmallNumber b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

SmallNumber scalar_of(Rank rank) { return {rank + 1, rank % 2 == 0 ? 2 : -1}; }

SmallNumber number(const TypedCase& test, Rank rank, std::size_t index) {
  std::uint64_t word = (index * 64 + rank + 1) * 0x9e3779b97f4a7c15ULL;
  word = (word ^ word >> 31) * 0xbf58476d1ce4e5b9ULL >> 20;
  if (test.type == DataType::boolean) return {static_cast<std::int64_t>(word % 2), 0};
  const std::int64_t scale = test.reduction == Reduction::avg ? 60 : 1;  // Divisible by the number of ranks.
  const std::int64_t max = is_complex(test.type) ? 2 : 127;
  return {scale * (static_cast<std::int64_t>(word % (2 * max + 1)) - max),
          scale * (static_cast<std::int64_t>(word / 16 % 5) - 2)};
}

SmallNumber combined(Reduction reduction, SmallNumber a, SmallNumber b) {
  switch (reduction) {
    case Reduction::prod: return product(a, b);
    case Reduction::min: return {std::min(a.real, b.real)};
    case Reduction::max: return {std::max(a.real, b.real)};
    case Reduction::band: return {a.real & b.real};
    case Reduction::bor: return {a.real | b.real};
    case Reduction::bxor: return {a.real ^ b.real};
    default: return {a.real + b.real, a.imaginary + b.imaginary};
  }
}

SmallNumber reduced(const TypedCase& test, std::size_t index) {
  const Rank ranks = test.shape.problem.ranks;
  SmallNumber result;
  for (Rank rank = 0; rank < ranks; ++rank) {
    SmallNumber next = number(test, rank, index);
    if (test.reduction == Reduction::pre_mul_sum) next = product(next, scalar_of(rank));
    result = rank == 0 ? next : combined(test.reduction, result, next);
  }
  if (test.reduction == Reduction::avg) return {result.real / ranks, result.imaginary / ranks};
  return result;
}

SmallNumber wanted(const TypedCase& test, Rank rank, std::size_t index) {
  const Problem& problem = test.shape.problem;
  const std::size_t count = test.shape.count;
  const auto block = static_cast<Rank>(index / count);
  switch (problem.collective) {
    case Collective::all_reduce:
    case Collective::reduce: return reduced(test, index);
    case Collective::reduce_scatter: return reduced(test, rank * count + index);
    case Collective::all_gather:
    case Collective::gather: return number(test, block, index % count);
    case Collective::all_to_all: return number(test, block, rank * count + index % count);
    case Collective::broadcast: return number(test, problem.root, index);
    case Collective::scatter: return number(test, problem.root, rank * count + index);
  }
  return {};
}

template <typename T>
void put_parts(std::byte* to, SmallNumber value) {
  const T parts[] = {static_cast<T>(value.real), static_cast<T>(value.imaginary)};
  std::memcpy(to, parts, sizeof parts);
}

void put(DataType type, std::byte* to, SmallNumber value) {
  if (type == DataType::boolean) value.real = value.real != 0;
  if (type == DataType::complex64) return put_parts<float>(to, value);
  if (type == DataType::complex128) return put_parts<double>(to, value);
  std::memcpy(to, &value.real, size_of(type));  // Little-endian.
}

template <typename T>
bool equal_parts(const std::byte* a, const std::byte* b) {
  T left[2], right[2];
  std::memcpy(left, a, sizeof left);
  std::memcpy(right, b, sizeof right);
  return left[0] == right[0] && left[1] == right[1];
}

// Compares complex numbers by value: products may be -0.
bool equal_numbers(DataType type, const std::byte* a, const std::byte* b) {
  if (type == DataType::complex64) return equal_parts<float>(a, b);
  if (type == DataType::complex128) return equal_parts<double>(a, b);
  return std::memcmp(a, b, size_of(type)) == 0;
}

// Returns an error in the result on one rank, or an empty string.
std::string run_typed(Communicator& communicator, const TypedCase& test, const CommunicatorOptions& options) {
  const Problem& problem = test.shape.problem;
  const Rank rank = communicator.rank();
  const std::size_t size = size_of(test.type);
  const std::size_t inputs = input_blocks(problem, rank) * test.shape.count;
  const std::size_t outputs = output_blocks(problem, rank) * test.shape.count;
  std::vector<std::byte> separate(inputs * size), memory(std::max(inputs, outputs) * size, std::byte{0x5a});
  std::byte* input = separate.data();
  std::byte* output = memory.data();
  if (problem.in_place && inputs > 0 && outputs > 0) {
    const std::int64_t shift = in_place_shift(problem, rank) * static_cast<std::int64_t>(test.shape.count * size);
    input = memory.data() + std::max<std::int64_t>(shift, 0);
    output = input - shift;
  }
  for (std::size_t i = 0; i < inputs; ++i) put(test.type, input + i * size, number(test, rank, i));
  Call call;
  call.collective = problem.collective;
  call.type = test.type;
  call.reduction = test.reduction;
  call.root = problem.root;
  call.count = test.shape.count;
  call.input = input;
  call.output = output;
  call.scalar = static_cast<double>(scalar_of(rank).real);
  call.imaginary_scalar = static_cast<double>(scalar_of(rank).imaginary);
  const Status status = communicator.run(call, &options);
  if (!status.ok()) return status.message();
  for (std::size_t i = 0; i < outputs; ++i) {
    std::byte right[16];
    put(test.type, right, wanted(test, rank, i));
    if (!equal_numbers(test.type, output + i * size, right)) return "element " + std::to_string(i) + " is wrong";
  }
  return "";
}

// Pairs of an old type and an old reduction have tests elsewhere.
std::vector<std::pair<DataType, Reduction>> new_pairs(Collective collective) {
  std::vector<std::pair<DataType, Reduction>> pairs;
  for (std::uint32_t t = 0; t < kDataTypes; ++t) {
    for (std::uint32_t r = 0; r < (reduces(collective) ? kReductions : 1); ++r) {
      const auto type = static_cast<DataType>(t);
      const auto reduction = static_cast<Reduction>(r);
      const bool is_new = type == DataType::boolean || is_complex(type) || is_bitwise(reduction);
      if (is_new && supports(type, reduction)) pairs.emplace_back(type, reduction);
    }
  }
  return pairs;
}

class Types : public testing::TestWithParam<Rank> {
 protected:
  void run_all(const TypedCase& test, const CommunicatorOptions& options) {
    std::vector<std::string> errors(GetParam());
    on_all(ranks_, [&](Communicator& communicator) -> Status {
      errors[communicator.rank()] = run_typed(communicator, test, options);
      return {};
    });
    ASSERT_EQ(errors, std::vector<std::string>(GetParam()))
        << options.algorithm << " " << options.protocol << ", " << describe(test.shape.problem) << ", "
        << name(test.reduction) << " of " << test.shape.count << " " << name(test.type);
  }

  // Every pair of type and reduction, with a count that changes from pair to pair.
  void run_pairs(Problem problem, const CommunicatorOptions& options) {
    constexpr std::size_t kCounts[] = {1, 3, 37, 513, 1001, 20'011};
    for (const auto& [type, reduction] : new_pairs(problem.collective)) {
      if (reduction == Reduction::pre_mul_sum && options.algorithm.ends_with("_mapped")) continue;
      const std::size_t count = kCounts[turn_++ % std::size(kCounts)];
      if (options.protocol == "LL" && count > 1001) continue;
      if (!cases_.takes()) continue;
      ASSERT_NO_FATAL_FAILURE(run_all({{problem, count}, type, reduction}, options));
    }
  }

  Communicators ranks_ = make_ranks(GetParam());
  OneOf cases_{7, GetParam()};
  std::size_t turn_ = 0;
};

TEST_P(Types, AreReducedCorrectly_WithEveryAlgorithm) {
  for (Problem problem : problems_of(GetParam())) {
    for (const Algorithm* algorithm : catalogue(problem.collective)) {
      for (const bool in_place : {false, true}) {
        problem.in_place = in_place;
        if (!algorithm->supports(problem) || std::string_view(algorithm->name()).ends_with("_staged")) continue;
        const bool mapped = std::string_view(algorithm->name()).ends_with("_mapped");
        for (const char* protocol : {"LL", "Simple"}) {
          CommunicatorOptions options;
          options.algorithm = algorithm->name();
          if (!mapped) options.protocol = protocol;
          options.update_agreement_hash();
          ASSERT_NO_FATAL_FAILURE(run_pairs(problem, options));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Types, testing::Range(Rank{1}, Rank{6}));

}  // namespace
}  // namespace tutti::test
