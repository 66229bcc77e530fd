// Adding a residual to an input and rounding it: a thread block's threads give the same bits as the CPU.
#include "src/executor/thread_block/residual.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "src/executor/cpu/slot_encoder.h"
#include "tests/executor/warp_of_threads.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kKey = 0x123456789abcdef0;

struct Case {
  CompressionFormat format;
  DataType type;
  std::uint64_t count, blocks;
  bool dithers, in_place;
};

class ResidualCorrection : public testing::TestWithParam<int> {
 protected:
  ResidualCorrection() : seed_(std::random_device()()), random_(seed_) { std::printf("seed %u\n", seed_); }

  float number() {
    switch (random_() % 200) {
      case 0: return __builtin_bit_cast(float, static_cast<std::uint32_t>(random_()));
      case 1: return __builtin_inff();
      case 2: return -0.0F;
      default: return normal_(random_);
    }
  }

  struct Buffers {
    std::vector<std::byte> input, held;
    std::vector<float> residual;
    bool operator==(const Buffers& other) const {
      return input == other.input && held == other.held &&
             std::memcmp(residual.data(), other.residual.data(), residual.size() * sizeof(float)) == 0;
    }
  };

  Buffers buffers_of(const Case& at) {
    const std::uint64_t elements = at.count * at.blocks;
    Buffers buffers = {std::vector<std::byte>(elements * size_of(at.type)),
                       std::vector<std::byte>(elements * size_of(at.type)), std::vector<float>(elements)};
    for (std::uint64_t i = 0; i < elements; ++i) {
      const std::uint32_t bits = bits_of(at.type, number());
      std::memcpy(buffers.input.data() + i * size_of(at.type), &bits, size_of(at.type));
      buffers.residual[i] = 0.1F * number();
    }
    return buffers;
  }

  static void by_cpu(const Case& at, Buffers& buffers) {
    const SlotEncoder encoder(at.format, at.type);
    const std::uint64_t block_bytes = at.count * size_of(at.type);
    std::byte* const held = at.in_place ? buffers.input.data() : buffers.held.data();
    for (std::uint64_t block = 0; block < at.blocks; ++block) {
      const Dither dither = {kKey, block * at.count};
      encoder.apply_residual(buffers.input.data() + block * block_bytes, at.count,
                             buffers.residual.data() + block * at.count, held + block * block_bytes,
                             at.dithers ? &dither : nullptr);
    }
  }

  template <typename Run>
  static void by_thread_block(const Case& at, Buffers& buffers, Run&& run) {
    const KernelRounding rounding = {.input_key = kKey, .dithers = at.dithers ? 1U : 0U};
    run(ResidualTask{.input = buffers.input.data(),
                     .held = at.in_place ? buffers.input.data() : buffers.held.data(),
                     .residual = buffers.residual.data(),
                     .rounding = &rounding,
                     .count = at.count,
                     .blocks = at.blocks,
                     .compression = at.format,
                     .type = at.type});
  }

  static void by_threads(const ResidualTask& task) {
    visit_form(task.compression, [&]<class Form>(Type<Form>) {
      std::vector<std::thread> threads;
      for (std::uint32_t thread = 0; thread < WarpOfThreads::kThreads; ++thread)
        threads.emplace_back([&, thread] {
          ResidualApplication<Form, WarpOfThreads>(task, {thread, WarpOfThreads::kThreads}).run();
        });
      for (std::thread& thread : threads) thread.join();
    });
  }

  const unsigned seed_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
};

TEST_P(ResidualCorrection, MatchesCpuBits) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
    for (const std::uint64_t count : {1U, 127U, 128U, 645U}) {
      for (const std::uint64_t blocks : {1U, 3U}) {
        for (const bool dithers : {false, true}) {
          const Case at = {
              static_cast<CompressionFormat>(GetParam()), type, count, blocks, dithers, random_() % 2 == 0};
          const Buffers given = buffers_of(at);
          Buffers wanted = given, found = given;
          by_cpu(at, wanted);
          by_thread_block(at, found, [](const ResidualTask& task) {
            for (std::uint32_t thread = 0; thread < 3; ++thread) apply_residual(task, {thread, 3});
          });
          ASSERT_TRUE(found == wanted) << name(type) << " " << count << " x " << blocks << ", seed " << seed_;
          if (count < 128) continue;
          found = given;
          by_thread_block(at, found, by_threads);
          ASSERT_TRUE(found == wanted) << "a warp's: " << name(type) << " " << count << " x " << blocks << ", seed "
                                       << seed_;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ResidualCorrection, testing::Range(1, int{kCompressionFormats}),
                         [](const auto& format) {
                           return std::string(name(static_cast<CompressionFormat>(format.param)));
                         });

}  // namespace
}  // namespace tutti::test
