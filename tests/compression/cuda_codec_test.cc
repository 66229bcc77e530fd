// The GPU's codecs give the same bits as the CPU's.
#include "tests/compression/cuda_codec.h"

#include <gtest/gtest.h>

#include "tests/compression/cases.h"

namespace tutti::test {
namespace {

std::vector<float> likely_and_hostile() {
  const std::uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  CaseValues source(seed);
  std::vector<float> values;
  while (values.size() < 1'000'000) {
    const std::vector<float> group = source.group(source.word() % 8 == 0);
    values.insert(values.end(), group.begin(), group.end());
  }
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    values.push_back(to_float(Float16{static_cast<std::uint16_t>(bits)}));
    values.push_back(float_of(bits << 16));
    values.push_back(float_of(bits << 16 | 0x8000u));
  }
  values.resize(values.size() - 50);
  return values;
}

TEST(CudaCodec, EncodesLikeCpu) {
  const std::vector<float> values = likely_and_hostile();
  for (const CompressionFormat format : compression_formats()) {
    for (const DataType type : kTensorTypes) {
      const Dither random = {5, 17};
      for (const Dither* dither : {static_cast<const Dither*>(nullptr), &random}) {
        const auto expected = encoded(find_codec(format), format, values, type, dither);
        std::vector<std::byte> compression(expected.size());
        ASSERT_TRUE(encode_on_gpu(format, values.data(), values.size(), compression.data(), range_of(type), dither));
        EXPECT_TRUE(compression == expected) << name(format) << " of " << name(type);
      }
    }
  }
}

TEST(CudaCodec, DecodesAnyBytesLikeCpu) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  constexpr std::uint64_t kCount = 10'000 * kCompressionGroup - 3;
  for (const CompressionFormat format : compression_formats()) {
    std::vector<std::byte> compression(std::size_t{10'000} * compressed_bytes(format));
    for (std::byte& byte : compression) byte = static_cast<std::byte>(source.word());
    std::vector<float> values(kCount);
    ASSERT_TRUE(decode_on_gpu(format, compression.data(), kCount, values.data()));
    EXPECT_TRUE(same_bits(values, decoded(find_codec(format), compression, kCount))) << name(format);
  }
}

}  // namespace
}  // namespace tutti::test
