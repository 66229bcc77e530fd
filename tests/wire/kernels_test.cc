// Every instruction set of this CPU against one element at a time.
#include <gtest/gtest.h>

#include <functional>

#include "src/wire/codec_kernels.h"
#include "tests/wire/cases.h"

namespace tutti::test {
namespace {

using Compare = std::function<void(const Codec& scalar, const Codec& other, WireFormat format)>;

void for_each_kernel(const Compare& compare) {
  const CodecKernelList list = codec_kernels();
  ASSERT_STREQ(list.first[0].name, "scalar");
  ASSERT_GE(list.count, 2u);
  for (std::uint32_t k = 1; k < list.count; ++k) {
    for (const WireFormat format : wire_formats()) {
      SCOPED_TRACE(std::string(list.first[k].name) + " " + name(format));
      compare(list.first[0].find_codec(format), list.first[k].find_codec(format), format);
    }
  }
}

void expect_same(const Codec& scalar, const Codec& other, WireFormat format, const std::vector<float>& values) {
  for (const DataType type : kTensorTypes) {
    const auto wire = encoded(scalar, format, values, type);
    ASSERT_EQ(encoded(other, format, values, type), wire) << name(type);
    ASSERT_TRUE(same_bits(decoded(other, wire, values.size()), decoded(scalar, wire, values.size()))) << name(type);
  }
}

TEST(CodecKernels, EncodeLikelyAndHostileValuesAlike) {
  const std::uint64_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  std::vector<float> values;
  while (values.size() < 1'000'000) {
    const std::vector<float> group = source.group(source.word() % 8 == 0);
    values.insert(values.end(), group.begin(), group.end());
  }
  for_each_kernel(
      [&](const Codec& scalar, const Codec& other, WireFormat format) { expect_same(scalar, other, format, values); });
}

TEST(CodecKernels, EncodeAllNarrowFloatsAlike) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    values.push_back(to_float(Float16{static_cast<std::uint16_t>(bits)}));
    values.push_back(to_float(BFloat16{static_cast<std::uint16_t>(bits)}));
  }
  // What lies halfway, and beside it.
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    for (const std::uint32_t half : {0x7fffu, 0x8000u, 0x8001u, 0x0fffu, 0x1000u, 0x1001u})
      values.push_back(float_of(bits << 16 | half));
  }
  for_each_kernel(
      [&](const Codec& scalar, const Codec& other, WireFormat format) { expect_same(scalar, other, format, values); });
}

TEST(CodecKernels, EncodeShortGroupsAlike) {
  CaseValues source(3);
  const std::vector<float> group = source.group(false);
  for_each_kernel([&](const Codec& scalar, const Codec& other, WireFormat format) {
    for (std::uint32_t count = 0; count <= kWireGroup; ++count)
      expect_same(scalar, other, format, std::vector<float>(group.begin(), group.begin() + count));
  });
}

TEST(CodecKernels, DecodeAnyBytesAlike) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  for_each_kernel([&](const Codec& scalar, const Codec& other, WireFormat format) {
    std::vector<std::byte> wire(2000 * wire_bytes(format));
    for (std::byte& byte : wire) byte = static_cast<std::byte>(source.word());
    ASSERT_TRUE(same_bits(decoded(other, wire, 2000 * kWireGroup), decoded(scalar, wire, 2000 * kWireGroup)));
  });
}

}  // namespace
}  // namespace tutti::test
