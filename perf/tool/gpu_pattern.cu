#include "perf/tool/gpu_pattern.h"

#include "perf/tool/gpu_check.h"

namespace perf {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 1024;
constexpr std::size_t kMaxValues = 4097;

__device__ std::size_t first_of_thread() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::size_t threads() { return std::size_t{gridDim.x} * blockDim.x; }

__device__ void assign(Wide& word, std::uint64_t bits) { word = {bits, 0}; }
template <typename Word>
__device__ void assign(Word& word, std::uint64_t bits) {
  word = static_cast<Word>(bits);
}

__device__ bool differ(const Wide& word, std::uint64_t bits) { return word.low != bits || word.high != 0; }
template <typename Word>
__device__ bool differ(Word word, std::uint64_t bits) {
  return word != static_cast<Word>(bits);
}

// A word has the size of an element. Little-endian: its bits are the first bytes of a value's bits.
template <typename Word>
__global__ void fill_words(Word* memory, Values values, const std::uint64_t* bits, std::uint32_t rank,
                           std::size_t count) {
  for (std::size_t i = first_of_thread(); i < count; i += threads()) assign(memory[i], bits[values.of(rank, i)]);
}

template <typename Word>
__global__ void compare_words(const Word* memory, Output output, const std::uint64_t* bits, unsigned long long* wrong) {
  for (std::size_t block = 0; block < output.blocks; ++block, memory += output.count) {
    for (std::size_t i = first_of_thread(); i < output.count; i += threads()) {
      if (differ(memory[i], bits[output.at(block, i)])) atomicAdd(wrong, 1ULL);
    }
  }
}

// Calls `run` with a word type of `element_bytes`.
template <typename Do>
void with_word(std::uint32_t element_bytes, Do&& run) {
  switch (element_bytes) {
    case 1: return run(std::uint8_t{});
    case 2: return run(std::uint16_t{});
    case 4: return run(std::uint32_t{});
    case 8: return run(std::uint64_t{});
    case 16: return run(Wide{});
    default: fail("no kernel fills elements of %u bytes", element_bytes);
  }
}

}  // namespace

GpuPattern::GpuPattern(cudaStream_t stream) : stream_(stream) {
  check(cudaMalloc(&words_, (1 + kMaxValues) * sizeof *words_), "cudaMalloc");
}

void GpuPattern::begin(const Pattern& pattern) {
  const std::vector<std::uint64_t>& bits = pattern.bits();
  if (bits.size() > kMaxValues)
    fail("a pattern of %zu values is too long; the maximum on GPUs is %zu", bits.size(), kMaxValues);
  check(cudaMemsetAsync(words_, 0, sizeof *words_, stream_), "cudaMemsetAsync");
  check(cudaMemcpyAsync(words_ + 1, bits.data(), bits.size() * sizeof *words_, cudaMemcpyDefault, stream_),
        "cudaMemcpyAsync");
}

std::uint64_t GpuPattern::end() {
  check(cudaGetLastError(), "launching the kernel of the pattern");
  std::uint64_t counted = 0;
  check(cudaMemcpyAsync(&counted, words_, sizeof counted, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  return counted;
}

void GpuPattern::fill(void* memory, const Pattern& pattern, int rank, std::size_t count) {
  begin(pattern);
  with_word(pattern.element_bytes(), [&](auto word) {
    fill_words<<<kBlocks, kThreads, 0, stream_>>>(static_cast<decltype(word)*>(memory), pattern.values(), words_ + 1,
                                                  static_cast<std::uint32_t>(rank), count);
  });
  end();
}

std::uint64_t GpuPattern::wrong(const void* memory, const Pattern& pattern, const Output& output) {
  begin(pattern);
  with_word(pattern.element_bytes(), [&](auto word) {
    compare_words<<<kBlocks, kThreads, 0, stream_>>>(static_cast<const decltype(word)*>(memory), output, words_ + 1,
                                                     reinterpret_cast<unsigned long long*>(words_));
  });
  return end();
}

}  // namespace perf
