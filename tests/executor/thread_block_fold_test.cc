// The fold of a thread block gives the same bits as the CPU's, for all types and reductions.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "src/executor/cpu/fold.h"
#include "src/executor/thread_block/fold.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kSeed = 20261121;
constexpr std::size_t kGuard = 64;

class ThreadBlockFoldTest : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed)); }

  DataType type() const { return static_cast<DataType>(GetParam()); }

  // Any bits except NaN, unless only few operands are added.
  std::vector<std::byte> random_bytes(std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::byte& each : made) each = static_cast<std::byte>(random_());
    return made;
  }

  // Runs both folds at the same offsets, and compares the results and the bytes around them.
  void compare(Reduction reduction, std::uint32_t source_count, std::uint64_t count, std::size_t skew, bool complete) {
    const std::size_t bytes = count * size_of(type());
    std::vector<std::vector<std::byte>> memory;
    for (std::uint32_t k = 0; k < source_count; ++k) memory.push_back(random_bytes(bytes + kGuard));
    std::vector<const std::byte*> sources;
    for (std::uint32_t k = 0; k < source_count; ++k)
      sources.push_back(aligned(memory[k]) + (k + 1 == source_count ? skew : 0) * size_of(type()));
    std::vector<std::byte> wanted(bytes + kGuard), found(bytes + kGuard);
    std::byte* wanted_at = aligned(wanted);
    std::byte* found_at = aligned(found);

    FoldArguments arguments;
    arguments.sources = sources.data();
    arguments.targets = &wanted_at;
    arguments.source_count = source_count;
    arguments.target_count = 1;
    arguments.count = count;
    arguments.own = reduction == Reduction::pre_mul_sum ? source_count - 1 : FoldArguments::kNone;
    arguments.complete = complete;
    // Division by a power of two has its own code path.
    const std::uint32_t ranks = 3 + random_() % 2;
    arguments.ranks = ranks;
    arguments.scale = 1.75;
    arguments.integer_scale = -3;
    find_fold(type(), reduction)(arguments);

    const FoldTask task = {.type = type(), .reduction = reduction, .ranks = ranks, .scale = 1.75, .integer_scale = -3};
    std::vector<std::uint8_t> scaled(source_count, 0);
    scaled.back() = reduction == Reduction::pre_mul_sum;
    FoldOperands operands = {.sources = sources.data(),
                             .scaled = scaled.data(),
                             .targets = &found_at,
                             .source_count = source_count,
                             .target_count = 1,
                             .count = count,
                             .complete = complete};
    for (const std::uint32_t threads : {4U, 64U}) {  // Some of the 64 threads have no elements.
      operands.aligned = threads == 64 && skew == 0;
      std::fill(found.begin(), found.end(), std::byte{0});
      for (std::uint32_t thread = 0; thread < threads; ++thread) thread_block_fold(task, operands, {thread, threads});
      ASSERT_EQ(std::memcmp(wanted_at, found_at, bytes), 0)
          << name(reduction) << " of " << source_count << " times " << count << " " << name(type()) << ", skew " << skew
          << (complete ? ", complete" : "") << ", " << ranks << " ranks, " << threads << " threads, seed " << kSeed;
      for (std::size_t i = bytes; i < bytes + kGuard / 2; ++i) ASSERT_EQ(found_at[i], std::byte{0}) << "wrote behind";
    }
  }

  static std::byte* aligned(std::vector<std::byte>& memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (kPackBytes - address % kPackBytes) % kPackBytes;
  }

  std::mt19937_64 random_{kSeed};
};

TEST_P(ThreadBlockFoldTest, MatchesCpuBits) {
  for (std::uint32_t r = 0; r < kReductions; ++r) {
    if (!thread_block_supports(type(), static_cast<Reduction>(r))) continue;
    for (const std::uint32_t sources : {1U, 2U, 3U, 8U}) {
      for (const std::uint64_t count : {1U, 5U, 16U, 63U, 64U, 200U, 1031U}) {
        for (const std::size_t skew : {0U, 1U}) {
          ASSERT_NO_FATAL_FAILURE(compare(static_cast<Reduction>(r), sources, count, skew, random_() % 2 == 0));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ThreadBlockFoldTest, testing::Range(0, int{kDataTypes}),
                         [](const auto& type) { return std::string(name(static_cast<DataType>(type.param))); });

}  // namespace
}  // namespace tutti::test
