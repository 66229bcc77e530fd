// The GPU's code fills and checks memory like the host's.
#include "perf/tool/gpu_pattern.h"

#include <gtest/gtest.h>

#include "perf/tool/gpu_check.h"
#include "tests/base/case_sampling.h"

namespace perf {
namespace {

constexpr Position kThird = {.rank = 2, .ranks = 5, .root = 1};
constexpr std::size_t kCount = 4'099;  // No multiple of the size of a thread group.

class GpuPatternTest : public testing::Test {
 protected:
  GpuPatternTest() : pattern_(stream()) { check(cudaMalloc(&memory_, kMax), "cudaMalloc"); }
  ~GpuPatternTest() override { cudaFree(memory_); }

  static cudaStream_t stream() {
    static const cudaStream_t stream = [] {
      cudaStream_t made = nullptr;
      check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
      return made;
    }();
    return stream;
  }
  // In the stream of the kernels: cudaMemcpy() may return before pageable memory has arrived on the device.
  void put(const std::vector<char>& bytes) { copy(memory_, bytes.data(), bytes.size()); }
  std::vector<char> taken(std::size_t bytes) {
    std::vector<char> taken(bytes);
    copy(taken.data(), memory_, bytes);
    return taken;
  }
  static void copy(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  }

  static constexpr std::size_t kMax = kCount * sizeof(Wide) * kThird.ranks;
  GpuPattern pattern_;
  void* memory_ = nullptr;
};

std::vector<char> right_output(const Pattern& pattern, const Output& output) {
  std::vector<char> bytes;
  for (std::size_t block = 0; block < output.blocks; ++block) {
    for (std::size_t i = 0; i < output.count; ++i) {
      const Wide wide = {pattern.bits()[output.at(block, i)], 0};
      const auto* word = reinterpret_cast<const char*>(&wide);
      bytes.insert(bytes.end(), word, word + pattern.element_bytes());
    }
  }
  return bytes;
}

TEST_F(GpuPatternTest, FillsLikeHost) {
  tutti::test::OneOf some(1);
  for (const Element& element : all_elements()) {
    for (const Operation& operation : all_operations()) {
      if (!some.takes()) continue;
      const Pattern pattern(element, operation, kThird.ranks, 9);
      std::vector<char> wanted(kCount * element.size);
      pattern.fill(wanted.data(), kThird.rank, 0, kCount);
      pattern_.fill(memory_, pattern, kThird.rank, kCount);
      EXPECT_EQ(taken(wanted.size()), wanted) << element.name << " " << operation.name;
    }
  }
}

TEST_F(GpuPatternTest, ChecksLikeHost) {
  tutti::test::OneOf some(1);
  for (const char* name :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "scatter", "sendrecv"}) {
    for (const Element& element : all_elements()) {
      for (const Operation& operation : all_operations()) {
        if (!some.takes()) continue;
        const Pattern pattern(element, operation, kThird.ranks, 9);
        const Output output = pattern.output(*find_collective(name), kThird, kCount);
        std::vector<char> bytes = right_output(pattern, output);
        put(bytes);
        EXPECT_EQ(pattern_.wrong(memory_, pattern, output), 0U) << name << " " << element.name << " " << operation.name;
        for (const std::size_t offset : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1})
          bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
        put(bytes);
        EXPECT_EQ(pattern_.wrong(memory_, pattern, output), 3U) << name << " " << element.name << " " << operation.name;
      }
    }
  }
}

}  // namespace
}  // namespace perf
