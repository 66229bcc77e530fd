// A thread block's folds of compressed messages give the same bits as the CPU's, in messages and in memory.
#include "src/executor/thread_block/compressed_fold.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "src/executor/cpu/compressed_fold.h"
#include "tests/executor/elements.h"
#include "tests/executor/warp_of_threads.h"

namespace tutti::test {
namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kUntouched{0xa5};
constexpr std::uint32_t kThreads = 3;

struct Case {
  CompressionFormat format;
  DataType type;
  Reduction reduction = Reduction::sum;
  RoundedStores rounded_stores = RoundedStores::none;
  bool complete = false;
  std::uint32_t sources = 1;
  std::uint32_t messages = 0;  // Bit k: source k is a message.
  std::uint64_t count = 0;
  std::size_t skew = 0;  // Misalignment of memory, in elements.
  bool dithers = false, loses = false;
};

std::string describe(const Case& at) {
  return std::string(name(at.reduction)) + " of " + std::to_string(at.count) + " " + name(at.type) + " in " +
         name(at.format) + ", " + std::to_string(at.sources) + " sources, messages " + std::to_string(at.messages) +
         ", rounded_stores " + std::to_string(static_cast<int>(at.rounded_stores)) + (at.complete ? ", complete" : "") +
         ", skew " + std::to_string(at.skew) + (at.dithers ? ", by random numbers" : "") +
         (at.loses ? ", losses kept" : "");
}

std::size_t message_bytes(const Case& at) {
  return (at.count + kCompressionGroup - 1) / kCompressionGroup * compressed_bytes(at.format);
}

// Aligned, with guard bytes around it.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes, std::size_t shift = 0)
      : packs_((bytes + shift + kGuard) / sizeof(Pack) + 1), at_(reinterpret_cast<std::byte*>(packs_.data()) + shift) {
    std::memset(packs_.data(), static_cast<int>(kUntouched), packs_.size() * sizeof(Pack));
  }
  std::byte* data() { return at_; }
  bool operator==(const Buffer& other) const {
    return std::memcmp(packs_.data(), other.packs_.data(), packs_.size() * sizeof(Pack)) == 0;
  }

 private:
  std::vector<Pack> packs_;
  std::byte* at_;
};

enum class Threads { one, warp };

class CompressedThreadBlockFoldTest : public testing::TestWithParam<int> {
 protected:
  CompressedThreadBlockFoldTest() : seed_(std::random_device()()), random_(seed_) { std::printf("seed %u\n", seed_); }

  CompressionFormat format() const { return static_cast<CompressionFormat>(GetParam()); }

  // Mostly of one magnitude; sometimes zero, huge, small, or not finite.
  float number() {
    switch (random_() % 400) {
      case 0: return __builtin_bit_cast(float, static_cast<std::uint32_t>(random_()));
      case 1: return __builtin_inff();
      case 2: return -0.0F;
      case 3: return 1e-30F;
      default: return normal_(random_);
    }
  }

  void fill(const Case& at, std::byte* memory, bool message) {
    std::vector<float> values(at.count);
    const bool zeros = random_() % 8 == 0;
    for (float& value : values) value = zeros ? 0 : number();
    if (random_() % 2 == 0) decode_some(at, values);
    if (message) return find_codec(at.format).encode(values.data(), at.count, memory, range_of(at.type), nullptr);
    for (std::uint64_t i = 0; i < at.count; ++i) {
      const float value = values[i];
      if (at.type == DataType::float32) std::memcpy(memory + i * 4, &value, 4);
      const std::uint16_t half =
          at.type == DataType::float16 ? from_float<Float16>(value).bits : from_float<BFloat16>(value).bits;
      if (at.type != DataType::float32) std::memcpy(memory + i * 2, &half, 2);
    }
  }

  // Groups of decoded values, as if received in messages.
  void decode_some(const Case& at, std::vector<float>& values) {
    const Codec codec = find_codec(at.format);
    for (std::uint64_t i = 0; i < at.count; i += kCompressionGroup) {
      if (random_() % 2 == 0) continue;
      std::byte group[kCompressionGroup * sizeof(float)];
      const std::uint64_t length = std::min<std::uint64_t>(kCompressionGroup, at.count - i);
      codec.encode(values.data() + i, length, group, range_of(at.type), nullptr);
      codec.decode(group, length, values.data() + i);
    }
  }

  // Results in memory, a message, and a second message.
  void compare(const Case& at, Threads threads) {
    SCOPED_TRACE(describe(at) + ", seed " + std::to_string(seed_));
    const std::size_t memory_bytes = at.count * size_of(at.type);
    const std::size_t shift = at.skew * size_of(at.type);
    std::vector<Buffer> sources;
    std::vector<std::uint8_t> marks(at.sources), scaled(at.sources);
    for (std::uint32_t k = 0; k < at.sources; ++k) {
      marks[k] = at.messages >> k & 1;
      scaled[k] = k + 1 == at.sources && marks[k] == 0;
      sources.emplace_back(marks[k] != 0 ? message_bytes(at) : memory_bytes, marks[k] != 0 ? 0 : shift);
      fill(at, sources.back().data(), marks[k] != 0);
    }
    const std::vector<std::uint8_t> to_marks = {0, 1, 1};
    std::vector<Buffer> wanted, found;
    for (std::vector<Buffer>* targets : {&wanted, &found}) {
      targets->emplace_back(memory_bytes, shift);
      targets->emplace_back(message_bytes(at));
      targets->emplace_back(message_bytes(at));
    }
    const auto targets =
        static_cast<std::uint32_t>(at.rounded_stores == RoundedStores::none && at.messages == 0 ? 1 : 3);
    std::vector<float> quantization_errors(at.count);
    for (float& loss : quantization_errors) loss = random_() % 50 == 0 ? -0.0F : normal_(random_);
    std::vector<float> lost = quantization_errors;
    const Dither dither = {random_(), random_()};
    const Encoded encoded = {.sources = marks.data(),
                             .targets = to_marks.data(),
                             .dither = at.dithers ? &dither : nullptr,
                             .quantization_errors = at.loses ? quantization_errors.data() : nullptr};
    by_cpu(at, sources, wanted, encoded, targets, scaled.back() != 0);
    const ThreadBlock block{at,      found,         encoded,
                            targets, scaled.data(), {dither, at.loses ? lost.data() : nullptr, at.dithers}};
    threads == Threads::one ? by_thread_block(block, sources) : by_warp(block, sources);
    ASSERT_EQ(std::memcmp(lost.data(), quantization_errors.data(), at.count * sizeof(float)), 0) << "what is lost";
    ASSERT_TRUE(found[0] == wanted[0]) << "in memory";
    ASSERT_TRUE(found[1] == wanted[1]) << "in the message";
    ASSERT_TRUE(found[2] == wanted[2]) << "in the second message";
  }

  std::uint32_t any(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

 private:
  static void by_cpu(const Case& at, std::vector<Buffer>& sources, std::vector<Buffer>& targets, Encoded marks,
                     std::uint32_t target_count, bool scales_last) {
    std::vector<const std::byte*> from;
    for (Buffer& each : sources) from.push_back(each.data());
    std::byte* const to[] = {targets[0].data(), targets[1].data(), targets[2].data()};
    FoldArguments arguments;
    arguments.sources = from.data();
    arguments.targets = to;
    arguments.source_count = at.sources;
    arguments.target_count = target_count;
    arguments.count = at.count;
    arguments.complete = at.complete;
    arguments.ranks = kRanks;
    arguments.scale = kScale;
    if (scales_last && at.reduction == Reduction::pre_mul_sum) arguments.own = at.sources - 1;
    CompressedFold(at.format, at.type, at.reduction, at.rounded_stores)(arguments, marks);
  }

  struct ThreadBlock {
    const Case& at;
    std::vector<Buffer>& targets;
    Encoded marks;
    std::uint32_t target_count;
    const std::uint8_t* scaled;
    FoldRounding rounding;
    bool as_requested() const { return at.dithers || at.loses; }
  };

  // `fold` takes a task, operands and marks.
  template <typename Fold>
  static void with_operands(const ThreadBlock& block, std::vector<Buffer>& sources, Fold&& fold) {
    const Case& at = block.at;
    std::vector<const std::byte*> from;
    for (Buffer& each : sources) from.push_back(each.data());
    std::byte* const to[] = {block.targets[0].data(), block.targets[1].data(), block.targets[2].data()};
    const FoldTask task = {
        .type = at.type, .reduction = at.reduction, .compression = at.format, .ranks = kRanks, .scale = kScale};
    const FoldOperands operands = {.sources = from.data(),
                                   .targets = to,
                                   .source_count = at.sources,
                                   .target_count = block.target_count,
                                   .count = at.count,
                                   .complete = at.complete};
    std::vector<CompressedOperand> kinds;
    for (std::uint32_t k = 0; k < at.sources; ++k)
      kinds.push_back(block.marks.sources[k] != 0 ? CompressedOperand::message
                      : block.scaled[k] != 0      ? CompressedOperand::own_input
                                                  : CompressedOperand::scratch);
    constexpr CompressedOperand kTargets[] = {CompressedOperand::output, CompressedOperand::message,
                                              CompressedOperand::message};
    fold(task, operands, CompressedMarks{kinds.data(), kTargets});
  }

  static void by_thread_block(const ThreadBlock& block, std::vector<Buffer>& sources) {
    with_operands(block, sources, [&](const auto& task, const auto& operands, const auto& marks) {
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        const ThreadGroup threads = {thread, kThreads};
        if (!block.as_requested()) {
          compressed_thread_block_fold(task, block.at.rounded_stores, operands, marks, threads);
          continue;
        }
        visit_form(task.compression, [&]<class Form>(Type<Form>) {
          compressed_thread_block_fold_as<Form>(task, block.at.rounded_stores, operands, marks, threads,
                                                block.rounding);
        });
      }
    });
  }

  static void by_warp(const ThreadBlock& block, std::vector<Buffer>& sources) {
    with_operands(block, sources, [&](const auto& task, const auto& operands, const auto& marks) {
      visit_form(task.compression, [&]<class Form>(Type<Form>) {
        std::vector<std::thread> threads;
        for (std::uint32_t thread = 0; thread < WarpOfThreads::kThreads; ++thread) {
          threads.emplace_back([&, thread] {
            const ThreadGroup group = {thread, WarpOfThreads::kThreads};
            const auto fold = [&]<RoundingOptions kRounds>() {
              CompressedThreadBlockFold<Form, WarpOfThreads, kRounds>(task, block.at.rounded_stores, operands, marks,
                                                                      group, block.rounding)
                  .run();
            };
            block.as_requested() ? fold.template operator()<RoundingOptions::as_requested>()
                                 : fold.template operator()<RoundingOptions::to_nearest>();
          });
        }
        for (std::thread& thread : threads) thread.join();
      });
    });
  }

  static constexpr std::uint32_t kRanks = 6;
  static constexpr double kScale = -1.75;

  const unsigned seed_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
};

TEST_P(CompressedThreadBlockFoldTest, MatchesCpuBits) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
    for (const Reduction reduction : kFloatReductions) {
      for (const RoundedStores rounded_stores : {RoundedStores::none, RoundedStores::sums, RoundedStores::copies}) {
        for (std::uint32_t sources = 1; sources <= 3; ++sources) {
          for (std::uint32_t messages = 0; messages < 1U << sources; ++messages) {
            for (const std::uint64_t count : {1U, 127U, 128U, 641U}) {
              Case at = {format(), type, reduction, rounded_stores, any(2) == 0, sources, messages, count, any(4)};
              ASSERT_NO_FATAL_FAILURE(compare(at, Threads::one));
              const std::uint32_t requested = 1 + any(3);
              at.dithers = requested % 2 == 1;
              at.loses = requested > 1;
              ASSERT_NO_FATAL_FAILURE(compare(at, Threads::one));
            }
          }
        }
      }
    }
  }
}

TEST_P(CompressedThreadBlockFoldTest, MatchesCpuBits_WithWarps) {
  for (const std::uint64_t count : {131U, 1100U}) {
    for (std::uint32_t iteration = 0; iteration < 8; ++iteration) {
      const std::uint32_t sources = 1 + any(3);
      constexpr DataType kTypes[] = {DataType::float32, DataType::float16, DataType::bfloat16};
      ASSERT_NO_FATAL_FAILURE(
          compare({format(), kTypes[any(3)], kFloatReductions[any(std::size(kFloatReductions))],
                   static_cast<RoundedStores>(any(3)), any(2) == 0, sources, any(1U << sources), count, any(2) * any(4),
                   iteration % 4 == 1 || iteration == 7, iteration % 4 == 2 || iteration == 7},
                  Threads::warp));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, CompressedThreadBlockFoldTest, testing::Range(1, int{kCompressionFormats}),
                         [](const auto& format) {
                           return std::string(name(static_cast<CompressionFormat>(format.param)));
                         });

}  // namespace
}  // namespace tutti::test
