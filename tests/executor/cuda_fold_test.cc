// The kernel's folds give the same bits as the CPU's, for all types and reductions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "src/executor/cpu/fold.h"
#include "tests/executor/cuda_engine.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kSeed = 20261121;

// A fold of one step: units of scratch, and last the input, which pre_mul_sum scales.
struct Case {
  Reduction reduction;
  std::uint32_t sources;
  std::uint64_t count;
  std::size_t skew;  // Misalignment of the input, in elements.
  Fold kind;
  std::uint32_t ranks;
};

class KernelFold : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed)); }

  DataType type() const { return static_cast<DataType>(GetParam()); }

  std::pmr::vector<std::byte> random_bytes(std::size_t bytes) {
    std::pmr::vector<std::byte> made(bytes, engine_.memory());
    for (std::byte& each : made) each = static_cast<std::byte>(random_());
    return made;
  }

  FoldTask task_of(const Case& shape) const {
    FoldTask task;
    task.type = type();
    task.reduction = shape.reduction;
    task.ranks = shape.ranks;
    task.scale = 1.75;
    task.integer_scale = -3;
    return task;
  }

  std::vector<std::byte> image_of(const Case& shape) const {
    std::vector<Operand> operands;
    for (std::uint32_t k = 0; k + 1 < shape.sources; ++k) operands.push_back(scratch(k));
    operands.push_back(input(0));
    operands.push_back(output(0));
    const Instruction step = {
        .first = 0, .sources = static_cast<std::uint16_t>(shape.sources), .targets = 1, .fold = shape.kind};
    const std::uint32_t ends[] = {0, 1};
    const Program program = {.steps = &step,
                             .operands = operands.data(),
                             .rounds = ends,
                             .stages = ends,
                             .lanes = nullptr,
                             .stage_count = 1,
                             .units = 1,
                             .widest = shape.sources};
    Launch launch;
    launch.input.count = launch.output.count = launch.scratch_blocks.count = shape.count;
    launch.element_bytes = static_cast<std::uint32_t>(size_of(type()));
    launch.slice_elements = shape.count;
    return make_image(program, launch, {}, 1, false, 0);
  }

  void on_device(const Case& shape, std::byte* scratch, std::byte* input, std::byte* output) {
    const std::vector<std::byte> made = image_of(shape);
    std::pmr::vector<std::byte> image(made.begin(), made.end(), engine_.memory());
    KernelCall call;
    call.image = image.data();
    call.image_bytes = static_cast<std::uint32_t>(image.size());
    call.self = {input, output, scratch};
    call.task = task_of(shape);
    ASSERT_EQ(engine_.run({{call}}, 1), "");
  }

  void on_cpu(const Case& shape, const std::byte* scratch, const std::byte* input, std::byte* output) const {
    std::vector<const std::byte*> sources;
    for (std::uint32_t k = 0; k + 1 < shape.sources; ++k)
      sources.push_back(scratch + k * shape.count * size_of(type()));
    sources.push_back(input);
    FoldArguments arguments;
    arguments.sources = sources.data();
    arguments.targets = &output;
    arguments.source_count = shape.sources;
    arguments.target_count = 1;
    arguments.count = shape.count;
    arguments.own = shape.reduction == Reduction::pre_mul_sum ? shape.sources - 1 : FoldArguments::kNone;
    arguments.complete = shape.kind == Fold::complete;
    arguments.ranks = shape.ranks;
    arguments.scale = 1.75;
    arguments.integer_scale = -3;
    find_fold(type(), shape.reduction)(arguments);
  }

  void compare(const Case& shape) {
    const std::size_t bytes = shape.count * size_of(type());
    auto scratch = random_bytes(bytes * shape.sources);
    auto input = random_bytes(bytes + kPackBytes);
    std::byte* const skewed = input.data() + shape.skew * size_of(type());
    std::pmr::vector<std::byte> found(bytes + kPackBytes, std::byte{0x5a}, engine_.memory());
    std::vector<std::byte> wanted(bytes + kPackBytes, std::byte{0x5a});
    on_cpu(shape, scratch.data(), skewed, wanted.data());
    ASSERT_NO_FATAL_FAILURE(on_device(shape, scratch.data(), skewed, found.data()));
    const auto first = std::mismatch(found.begin(), found.end(), wanted.begin());
    ASSERT_TRUE(first.first == found.end())
        << name(shape.reduction) << " of " << shape.sources << " times " << shape.count << " " << name(type())
        << ", skew " << shape.skew << ", " << shape.ranks << " ranks, "
        << (shape.kind == Fold::complete ? "complete" : "partial") << ": differs at byte "
        << first.first - found.begin() << ", seed " << kSeed;
  }

  std::mt19937_64 random_{kSeed};
  CudaEngine engine_{Launches::together, Room::shared_memory};
};

TEST_P(KernelFold, MatchesCpuBits) {
  for (std::uint32_t r = 0; r < kReductions; ++r) {
    if (!thread_block_supports(type(), static_cast<Reduction>(r))) continue;
    for (const std::uint32_t sources : {1U, 2U, 3U, 8U}) {
      for (const std::uint64_t count : {1U, 5U, 64U, 1031U, 70001U}) {
        for (const std::size_t skew : {0U, 1U}) {
          const Fold kind = random_() % 4 == 0 ? Fold::partial : Fold::complete;
          const std::uint32_t ranks = 3 + random_() % 2;
          ASSERT_NO_FATAL_FAILURE(compare({static_cast<Reduction>(r), sources, count, skew, kind, ranks}));
        }
      }
    }
  }
}

// The smallest fold, by which tools/dev checks whether compute-sanitizer works.
TEST_P(KernelFold, MatchesCpuBits_OfOneElement) {
  ASSERT_NO_FATAL_FAILURE(compare({Reduction::sum, 2, 1, 0, Fold::complete, 2}));
}

INSTANTIATE_TEST_SUITE_P(Types, KernelFold, testing::Range(0, int{kDataTypes}),
                         [](const auto& type) { return std::string(name(static_cast<DataType>(type.param))); });

}  // namespace
}  // namespace tutti::test
