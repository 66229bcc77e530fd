// SlotEncoder stores every quantization error.
#include "src/executor/cpu/slot_encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "src/base/numeric.h"

namespace tutti::test {
namespace {

constexpr std::size_t kCount = 3 * kCompressionGroup + 45;
constexpr CompressionFormat kFormats[] = {CompressionFormat::bf16, CompressionFormat::fp8_e4m3,
                                          CompressionFormat::mxfp8, CompressionFormat::int8, CompressionFormat::int4};

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::byte> message_of(CompressionFormat format, std::size_t count) {
  return std::vector<std::byte>((count + kCompressionGroup - 1) / kCompressionGroup * compressed_bytes(format));
}

TEST(SlotEncoder, StoresQuantizationError) {
  for (const CompressionFormat format : kFormats) {
    const SlotEncoder encoder(format, DataType::float32);
    const Codec codec = find_codec(format);
    const std::vector<float> input = numbers(kCount, 1);
    std::vector<float> residual = numbers(kCount, 2), held(kCount), wanted(kCount), again(kCount);
    for (std::size_t i = 0; i < kCount; ++i) wanted[i] = input[i] + residual[i];
    encoder.apply_residual(reinterpret_cast<const std::byte*>(input.data()), kCount, residual.data(),
                           reinterpret_cast<std::byte*>(held.data()), nullptr);
    std::vector<std::byte> message = message_of(format, kCount);
    codec.encode(held.data(), kCount, message.data(), range_of(DataType::float32), nullptr);
    codec.decode(message.data(), kCount, again.data());
    EXPECT_EQ(again, held) << name(format);
    double lost = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(residual[i], wanted[i] - held[i]) << name(format) << " " << i;
      lost += std::abs(residual[i]);
    }
    EXPECT_GT(lost, 0) << name(format);
  }
}

// In any format, the sum of many results equals the sum of the inputs, except for one residual.
TEST(SlotEncoder, DoesNotDrift) {
  constexpr int kCalls = 200;
  const SlotEncoder encoder(CompressionFormat::int4, DataType::float32);
  const std::vector<float> input = numbers(kCount, 3);
  std::vector<float> residual(kCount, 0), held(kCount);
  std::vector<double> delivered(kCount, 0);
  for (int call = 0; call < kCalls; ++call) {
    encoder.apply_residual(reinterpret_cast<const std::byte*>(input.data()), kCount, residual.data(),
                           reinterpret_cast<std::byte*>(held.data()), nullptr);
    for (std::size_t i = 0; i < kCount; ++i) delivered[i] += held[i];
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(delivered[i] + residual[i], kCalls * static_cast<double>(input[i]), 1e-3) << i;
    EXPECT_LE(std::abs(residual[i]), 1) << i;
  }
}

TEST(SlotEncoder, KeepsResidualFinite) {
  for (const CompressionFormat format : kFormats) {
    const SlotEncoder encoder(format, DataType::float32);
    std::vector<float> input = numbers(kCount, 4), residual(kCount, 0.25F), held(kCount);
    const auto correct = [&] {
      encoder.apply_residual(reinterpret_cast<const std::byte*>(input.data()), kCount, residual.data(),
                             reinterpret_cast<std::byte*>(held.data()), nullptr);
    };
    residual[9] = NAN;
    input[5] = INFINITY;
    correct();
    EXPECT_FALSE(std::isfinite(held[5])) << name(format);
    EXPECT_EQ(residual[5], 0.25F) << name(format);
    for (const float rest : residual) EXPECT_TRUE(std::isfinite(rest)) << name(format);
    input[5] = 0;
    correct();
    for (const float value : held) EXPECT_TRUE(std::isfinite(value)) << name(format);
  }
}

TEST(SlotEncoder, DividesErrorOfMean) {
  const SlotEncoder encoder(CompressionFormat::int8, DataType::float32);
  const Codec codec = find_codec(CompressionFormat::int8);
  std::vector<float> values = numbers(kCount, 5), decoded(kCount), quantization_errors(kCount, 1);
  std::vector<std::byte> message = message_of(CompressionFormat::int8, kCount);
  codec.encode(values.data(), kCount, message.data(), range_of(DataType::float32), nullptr);
  codec.decode(message.data(), kCount, decoded.data());
  values[7] = INFINITY;  // Elements with a different value in the message.
  encoder.add_quantization_errors(values.data(), message.data(), kCount, 4, quantization_errors.data());
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(quantization_errors[i], i == 7 ? 1 : 1 + 4 * (values[i] - decoded[i])) << i;
}

// A 16-bit tensor holds the decoded value in rounded form, which counts as the same number.
TEST(SlotEncoder, RecognizesDecodedValues) {
  for (const DataType type : {DataType::float32, DataType::bfloat16, DataType::float16}) {
    for (const CompressionFormat format : kFormats) {
      const SlotEncoder encoder(format, type);
      const Codec codec = find_codec(format);
      std::vector<std::byte> first = message_of(format, kCount), second = first;
      std::vector<float> values = numbers(kCount, 6), quantization_errors(kCount, 0);
      encoder.encode(values.data(), kCount, first.data(), {8, 0});
      codec.decode(first.data(), kCount, values.data());
      for (float& value : values) {
        if (type == DataType::float16) value = to_float(from_float<Float16>(value));
        if (type == DataType::bfloat16) value = to_float(from_float<BFloat16>(value));
      }
      encoder.encode_held(values.data(), kCount, second.data(), {9, 0});
      EXPECT_EQ(second, first) << name(format) << " of " << name(type);
      encoder.add_quantization_errors_held(values.data(), second.data(), kCount, 1, quantization_errors.data());
      EXPECT_EQ(quantization_errors, std::vector<float>(kCount, 0)) << name(format) << " of " << name(type);
      values[kCount - 1] = values[0] * 0.37F;
      encoder.encode_held(values.data(), kCount, second.data(), {9, 0});
      EXPECT_EQ(std::memcmp(second.data(), first.data(), 3 * compressed_bytes(format)), 0) << name(format);
      EXPECT_NE(second, first) << name(format);
    }
  }
}

}  // namespace
}  // namespace tutti::test
