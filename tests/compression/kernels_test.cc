// Compares the kernels of every instruction set of this CPU with the scalar code.
#include <gtest/gtest.h>

#include <functional>

#include "src/compression/codec_kernels.h"
#include "tests/compression/cases.h"

namespace tutti::test {
namespace {

using Compare = std::function<void(const Codec& scalar, const Codec& other, CompressionFormat format)>;

void for_each_kernel(const Compare& compare) {
  const CodecKernelList list = codec_kernels();
  ASSERT_STREQ(list.first[0].name, "scalar");
  ASSERT_GE(list.count, 2u);
  for (std::uint32_t k = 1; k < list.count; ++k) {
    for (const CompressionFormat format : compression_formats()) {
      SCOPED_TRACE(std::string(list.first[k].name) + " " + name(format));
      compare(list.first[0].find_codec(format), list.first[k].find_codec(format), format);
    }
  }
}

void expect_same(const Codec& scalar, const Codec& other, CompressionFormat format, const std::vector<float>& values) {
  for (const DataType type : kTensorTypes) {
    const auto compression = encoded(scalar, format, values, type);
    ASSERT_EQ(encoded(other, format, values, type), compression) << name(type);
    ASSERT_TRUE(same_bits(decoded(other, compression, values.size()), decoded(scalar, compression, values.size())))
        << name(type);
  }
}

TEST(CodecKernels, EncodeLikelyAndHostileValues_LikeScalarCode) {
  const std::uint64_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  std::vector<float> values;
  while (values.size() < 1'000'000) {
    const std::vector<float> group = source.group(source.word() % 8 == 0);
    values.insert(values.end(), group.begin(), group.end());
  }
  for_each_kernel([&](const Codec& scalar, const Codec& other, CompressionFormat format) {
    expect_same(scalar, other, format, values);
  });
}

TEST(CodecKernels, EncodeAll16BitFloats_LikeScalarCode) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    values.push_back(to_float(Float16{static_cast<std::uint16_t>(bits)}));
    values.push_back(to_float(BFloat16{static_cast<std::uint16_t>(bits)}));
  }
  // Values halfway between, and beside them.
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    for (const std::uint32_t half : {0x7fffu, 0x8000u, 0x8001u, 0x0fffu, 0x1000u, 0x1001u})
      values.push_back(float_of(bits << 16 | half));
  }
  for_each_kernel([&](const Codec& scalar, const Codec& other, CompressionFormat format) {
    expect_same(scalar, other, format, values);
  });
}

TEST(CodecKernels, EncodeShortGroups_LikeScalarCode) {
  CaseValues source(3);
  const std::vector<float> group = source.group(false);
  for_each_kernel([&](const Codec& scalar, const Codec& other, CompressionFormat format) {
    for (std::uint32_t count = 0; count <= kCompressionGroup; ++count)
      expect_same(scalar, other, format, std::vector<float>(group.begin(), group.begin() + count));
  });
}

TEST(CodecKernels, DecodeAnyBytes_LikeScalarCode) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  for_each_kernel([&](const Codec& scalar, const Codec& other, CompressionFormat format) {
    std::vector<std::byte> compression(2000 * compressed_bytes(format));
    for (std::byte& byte : compression) byte = static_cast<std::byte>(source.word());
    ASSERT_TRUE(same_bits(decoded(other, compression, 2000 * kCompressionGroup),
                          decoded(scalar, compression, 2000 * kCompressionGroup)));
  });
}

}  // namespace
}  // namespace tutti::test
