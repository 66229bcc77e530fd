// The measurement of compression errors: data, sums, and ranks in one thread.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "algorithms/catalogue.h"
#include "perf/rounding/errors.h"
#include "perf/rounding/serial_ranks.h"

namespace tutti::test {
namespace {

using namespace rounding;

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr DataType kTypes[] = {DataType::float32, DataType::float16, DataType::bfloat16};

std::vector<float> of(Data data, Rank rank, DataType type = DataType::float32, std::uint64_t count = 4096) {
  return numbers({.data = data, .type = type, .ranks = 4}, rank, count);
}

TEST(RoundingData, IsReproducible_AndDiffersBetweenRanks) {
  for (std::uint32_t i = 0; i < kDataKinds; ++i) {
    const auto data = static_cast<Data>(i);
    SCOPED_TRACE(name(data));
    EXPECT_EQ(parse_data(name(data)).value(), data);
    if (data != Data::not_finite) {  // NaN is not equal to itself.
      EXPECT_EQ(of(data, 1), of(data, 1));
    }
    const bool shared = data == Data::identical || data == Data::zero;
    EXPECT_EQ(of(data, 1) == of(data, 2), shared);
  }
  EXPECT_FALSE(parse_data("normal").ok());
}

TEST(RoundingData, IsRepresentableInItsType) {
  for (const DataType type : kTypes) {
    const float min = type == DataType::float16 ? 0x1p-14f : 0x1p-126f;
    for (const float value : of(Data::denormal, 0, type)) EXPECT_LT(std::fabs(value), min);
    for (const float value : of(Data::gradient, 0, type)) EXPECT_EQ(held(type, value), value);
    float largest = 0;
    for (const float value : of(Data::largest, 0, type)) largest = std::max(largest, std::fabs(value));
    EXPECT_EQ(held(type, largest), largest);
    EXPECT_TRUE(std::isfinite(largest));
    EXPECT_TRUE(std::isinf(held(type, largest * 1.01f)));
  }
}

TEST(RoundingData, CancelsAndHasOutliers_WhereDocumented) {
  const std::vector<float> first = of(Data::cancelling, 2), second = of(Data::cancelling, 3);
  double size = 0, rest = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    size += std::fabs(first[i]);
    rest += std::fabs(first[i] + second[i]);
  }
  EXPECT_LT(rest, 0.01 * size);
  EXPECT_GT(rest, 0);
  const std::vector<float> outliers = of(Data::outlier, 0), one = of(Data::single, 0);
  for (std::size_t group = 0; group < outliers.size(); group += kCompressionGroup) {
    int large = 0, present = 0;
    for (std::size_t i = group; i < group + kCompressionGroup; ++i) {
      large += std::fabs(outliers[i]) > 10 ? 1 : 0;
      present += one[i] != 0 ? 1 : 0;
    }
    EXPECT_LE(large, 1);
    EXPECT_EQ(present, 1);
  }
}

// A reduction whose results equal those of `terms`.
Exact exact_of(Data data, std::uint64_t count = 256) {
  return Exact({.collective = Collective::all_reduce, .ranks = 2, .groups = {}}, {.data = data, .ranks = 2}, count);
}

TEST(RoundingErrors, MatchTheirDefinition) {
  const Exact exact = exact_of(Data::gaussian);
  std::vector<float> values(exact.results().begin(), exact.results().end());
  Errors none;
  add_errors(exact, exact.output(0), values, CompressionFormat::int8, none);
  EXPECT_LT(none.relative(), 1e-6);
  double square = 0;
  for (const double value : exact.results()) square += value * value;
  const auto rms = static_cast<float>(std::sqrt(square / 256));
  for (float& value : values) value += 0.01f * rms;
  Errors shifted;
  add_errors(exact, exact.output(0), values, CompressionFormat::int8, shifted);
  EXPECT_NEAR(shifted.relative(), 0.01, 1e-5);
  EXPECT_NEAR(shifted.bias(), 0.01, 1e-5);
  EXPECT_LT(shifted.cosine(), 1);
  EXPECT_GT(shifted.cosine(), 0.9999);
  EXPECT_GT(shifted.peak, 0.01 / 4);
  EXPECT_LT(shifted.peak, 0.01);
}

TEST(RoundingErrors, CountNonFiniteValues) {
  const Exact exact = exact_of(Data::not_finite, 1024);
  std::vector<float> values(exact.results().begin(), exact.results().end());
  Errors right;
  add_errors(exact, exact.output(0), values, CompressionFormat::fp16, right);
  EXPECT_EQ(right.lost + right.wrong + right.spoilt + right.stray, 0U);
  Errors as_integers;  // Infinities should have become NaN.
  add_errors(exact, exact.output(0), values, CompressionFormat::int8, as_integers);
  EXPECT_EQ(as_integers.wrong, 2U);
  std::vector<float> lost = values;
  for (float& value : lost) value = std::isfinite(value) ? value : 1;
  Errors losing;
  add_errors(exact, exact.output(0), lost, CompressionFormat::int8, losing);
  EXPECT_EQ(losing.lost, 4U);
  for (std::size_t i = 0; i < kCompressionGroup; ++i) values[i] = std::numeric_limits<float>::quiet_NaN();
  values[1023] = kInfinite;
  Errors spoilt;
  add_errors(exact, exact.output(0), values, CompressionFormat::int8, spoilt);
  EXPECT_EQ(spoilt.spoilt, kCompressionGroup - 1);
  EXPECT_EQ(spoilt.stray, 1U);
  Errors stray;
  add_errors(exact, exact.output(0), values, CompressionFormat::fp16, stray);
  EXPECT_EQ(stray.stray, kCompressionGroup);
}

// The result of two ranks, each with one value everywhere.
std::vector<float> sum_of(CompressionFormat format, DataType type, float first, float second) {
  constexpr std::uint64_t kCount = 384;
  const Problem problem = {.collective = Collective::all_reduce, .ranks = 2, .groups = {}};
  SerialRanks serial_ranks(*find(Collective::all_reduce, "two_shot"), problem, kCount);
  std::vector<std::vector<std::byte>> memory(4, std::vector<std::byte>(kCount * size_of(type)));
  for (const Rank rank : {0U, 1U}) {
    const std::vector<float> values(kCount, rank == 0 ? first : second);
    if (type == DataType::float32) std::memcpy(memory[rank].data(), values.data(), memory[rank].size());
    else
      find_codec(CompressionFormat::fp16).encode(values.data(), kCount, memory[rank].data(), range_of(type), nullptr);
  }
  const RankBuffers buffers[] = {{memory[0].data(), memory[2].data()}, {memory[1].data(), memory[3].data()}};
  EXPECT_TRUE(serial_ranks.run({format, type}, buffers, {}).ok());
  EXPECT_EQ(memory[2], memory[3]) << "ranks differ, " << name(format);
  EXPECT_TRUE(serial_ranks.run({format, type}, buffers, {.chunks = 3, .backwards = true}).ok());
  EXPECT_EQ(memory[2], memory[3]) << "ranks differ, " << name(format);
  return read(type, memory[3].data(), kCount);
}

TEST(RoundingRanksInOneThread, ComputeSums) {
  for (std::uint32_t f = 1; f < kCompressionFormats; ++f) {
    const auto format = static_cast<CompressionFormat>(f);
    const double near = format == CompressionFormat::mxfp8 ? 0.13 : 0.01;
    for (const float value : sum_of(format, DataType::float32, 1, 2)) EXPECT_NEAR(value, 3, 3 * near) << name(format);
  }
}

// Above 65504 a sum counts as infinite, although float16 would round it down. Each rank owns sums to which it adds its
// own uncompressed contribution. The sums of the first rank, in the first group, are 65504 + 8.
TEST(RoundingRanksInOneThread, Agree_WhenSumsExceedFloat16) {
  for (std::uint32_t f = 1; f < kCompressionFormats; ++f) {
    const auto format = static_cast<CompressionFormat>(f);
    if (compressed_bytes(format) == 2 * kCompressionGroup) continue;  // Not smaller than the tensor.
    SCOPED_TRACE(name(format));
    const std::vector<float> beyond = sum_of(format, DataType::float16, 65504, 8);
    for (std::size_t i = 0; i < beyond.size(); ++i)
      EXPECT_TRUE(i < kCompressionGroup ? !std::isfinite(beyond[i]) : std::fabs(beyond[i] - 65504) < 0.13 * 65504)
          << beyond[i];
    for (const float value : sum_of(format, DataType::float16, 65504, 0)) EXPECT_NEAR(value, 65504, 0.13 * 65504);
    for (const float value : sum_of(format, DataType::float16, 65504, 65504)) EXPECT_FALSE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace tutti::test
