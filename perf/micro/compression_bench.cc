// Benchmarks of encoding and decoding float32 values in the L1 cache, for each format and instruction set, and of
// memcpy(). Rates count the bytes of the values once; `both` encodes and decodes them.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "src/compression/codec_kernels.h"

namespace tutti {
namespace {

struct Buffers {
  explicit Buffers(std::uint64_t count)
      : values(count), decoded(count), compression(count / kCompressionGroup * 2 * kCompressionGroup) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random);
  }
  std::vector<float> values, decoded;
  std::vector<std::byte> compression;
};

constexpr std::uint64_t kCount = 4096;  // 16 KiB of values fit the L1 cache with their compressed bytes.

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kCount * sizeof(float)));
}

void encode(benchmark::State& state, Codec codec) {
  Buffers buffers(kCount);
  for (auto _ : state) {
    codec.encode(buffers.values.data(), kCount, buffers.compression.data(), range_of(DataType::float32), nullptr);
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

void dither(benchmark::State& state, Codec codec) {
  Buffers buffers(kCount);
  const Dither random = {1, 0};
  for (auto _ : state) {
    codec.encode(buffers.values.data(), kCount, buffers.compression.data(), range_of(DataType::float32), &random);
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

void decode(benchmark::State& state, Codec codec) {
  Buffers buffers(kCount);
  codec.encode(buffers.values.data(), kCount, buffers.compression.data(), range_of(DataType::float32), nullptr);
  for (auto _ : state) {
    codec.decode(buffers.compression.data(), kCount, buffers.decoded.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

void both(benchmark::State& state, Codec codec) {
  Buffers buffers(kCount);
  for (auto _ : state) {
    codec.encode(buffers.values.data(), kCount, buffers.compression.data(), range_of(DataType::float32), nullptr);
    codec.decode(buffers.compression.data(), kCount, buffers.decoded.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

void copy(benchmark::State& state) {
  Buffers buffers(kCount);
  for (auto _ : state) {
    std::memcpy(buffers.decoded.data(), buffers.values.data(), kCount * sizeof(float));
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  using namespace tutti;
  benchmark::RegisterBenchmark("memcpy", copy);
  const CodecKernelList list = codec_kernels();
  for (std::uint32_t k = 0; k < list.count; ++k) {
    for (std::uint32_t f = 1; f < kCompressionFormats; ++f) {
      const auto format = static_cast<CompressionFormat>(f);
      const Codec codec = list.first[k].find_codec(format);
      const std::string name = std::string(list.first[k].name) + "/" + tutti::name(format);
      benchmark::RegisterBenchmark((name + "/encode").c_str(), encode, codec);
      benchmark::RegisterBenchmark((name + "/decode").c_str(), decode, codec);
      benchmark::RegisterBenchmark((name + "/both").c_str(), both, codec);
      if (k == 0) benchmark::RegisterBenchmark((name + "/dither").c_str(), dither, codec);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
