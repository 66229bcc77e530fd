// Decoding, rounding to the tensor's type and encoding again gives the same bytes. A rank that stores decoded values
// therefore equals all other ranks.
#include <gtest/gtest.h>

#include <functional>

#include "src/compression/codec_kernels.h"
#include "tests/compression/cases.h"

namespace tutti::test {
namespace {

using Check = std::function<void(const Codec& codec, CompressionFormat format, DataType type)>;

void for_each_case(const Check& check) {
  for (const CompressionFormat format : compression_formats()) {
    for (const DataType type : kTensorTypes) {
      SCOPED_TRACE(std::string(name(format)) + " of " + name(type));
      check(find_codec(format), format, type);
    }
  }
}

testing::AssertionResult comes_back(const Codec& codec, CompressionFormat format, DataType type,
                                    const std::vector<float>& values) {
  const auto compression = encoded(codec, format, values, type);
  std::vector<float> stored = decoded(codec, compression, values.size());
  for (float& value : stored) value = stored_as(type, value);
  const auto again = encoded(codec, format, stored, type);
  for (std::uint64_t i = 0; i < compression.size(); ++i) {
    if (compression[i] == again[i]) continue;
    const std::uint64_t group = i / compressed_bytes(format);
    float largest = 0;
    for (std::uint64_t k = group * kCompressionGroup; k < values.size() && k < (group + 1) * kCompressionGroup; ++k)
      largest = std::max(largest, std::abs(values[k]));
    return testing::AssertionFailure() << "byte " << i % compressed_bytes(format)
                                       << " of a group with the largest magnitude " << std::hexfloat << largest
                                       << " was " << static_cast<int>(compression[i]) << " and is "
                                       << static_cast<int>(again[i]);
  }
  return testing::AssertionSuccess();
}

void expect_all_come_back(DataType type, const std::vector<float>& values) {
  for (const CompressionFormat format : compression_formats())
    EXPECT_TRUE(comes_back(find_codec(format), format, type, values)) << name(format) << " of " << name(type);
}

// Groups whose scale blocks have this largest magnitude, at changing positions.
void append_group(std::vector<float>& values, CaseValues& source, float largest) {
  for (std::uint32_t scale_block = 0; scale_block < kCompressionGroup; scale_block += 32) {
    const std::uint64_t at = source.word() % 32;
    for (std::uint32_t i = 0; i < 32; ++i) {
      const auto part = static_cast<float>(static_cast<std::int64_t>(source.word() % 20001) - 10000) / 10000;
      values.push_back(i == at ? (source.word() % 2 == 0 ? -largest : largest) : part * largest);
    }
  }
}

// Uses all scales: every bfloat16 as the largest magnitude, exactly, and between it and the next.
TEST(RoundTrip, GivesSameBytes_ForAllScales) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  for (const DataType type : kTensorTypes) {
    std::vector<float> values;
    for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
      const auto low = static_cast<std::uint32_t>(source.word() & 0xffff);
      const float largest = float_of(bits << 16 | (bits % 4 == 0 ? 0 : low));
      if (largest > range_of(type).largest) break;
      append_group(values, source, stored_as(type, largest));
    }
    expect_all_come_back(type, values);
  }
}

// Uses scales that are ties or next to one: multiples of codes and half codes of every step, and values around them.
TEST(RoundTrip, GivesSameBytes_AtTies) {
  for (const DataType type : kTensorTypes) {
    std::vector<float> values;
    const auto append = [&](float top, float largest) {
      if (largest > range_of(type).largest) return;
      for (std::uint32_t i = 0; i < kCompressionGroup; ++i)
        values.push_back(i % 32 == 0 ? largest : largest / top * (static_cast<float>(i % 32 * 8 + i / 32) / 2));
    };
    for (const float top : {127.0f, 31.0f, 7.0f, 448.0f, 57344.0f}) {
      for (int mantissa = 256; mantissa < 512; ++mantissa) {
        for (const int exponent : {-90, -20, -12, 0, 4}) {
          const float largest = std::ldexp(top * static_cast<float>(mantissa) / 256, exponent);
          append(top, float_of(bits_of(largest) - 1));
          append(top, largest);
          append(top, float_of(bits_of(largest) + 1));
        }
      }
    }
    for (float& value : values) value = std::min(value, range_of(type).largest);
    expect_all_come_back(type, values);
  }
}

TEST(RoundTrip, GivesSameBytes_ForLikelyAndHostileValues) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  std::vector<float> values;
  for (int group = 0; group < 10'000; ++group) {
    const std::vector<float> more = source.group(group % 8 == 0);
    values.insert(values.end(), more.begin(), more.end());
  }
  values.resize(values.size() - 50);
  for (const DataType type : kTensorTypes) expect_all_come_back(type, values);
}

TEST(RoundTrip, GivesSameBytes_ForEvery16BitFloat) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    values.push_back(to_float(Float16{static_cast<std::uint16_t>(bits)}));
    values.push_back(to_float(BFloat16{static_cast<std::uint16_t>(bits)}));
    values.push_back(float_of(bits << 16 | 0x8000u));
  }
  for (const DataType type : kTensorTypes) expect_all_come_back(type, values);
}

// Finite values stay finite in every tensor type. The format fp16 overflows as usual.
TEST(RoundTrip, StaysInRangeOfTensor) {
  CaseValues source(4);
  for_each_case([&](const Codec& codec, CompressionFormat format, DataType type) {
    if (format == CompressionFormat::fp16) return;
    const float largest = range_of(type).largest;
    std::vector<float> values;
    for (const float near : {largest, float_of(bits_of(largest) - 1), largest * 0.999f, largest * 0.997f,
                             largest * 0.995f, largest * 0.99f})
      append_group(values, source, near);
    for (const float value : decoded(codec, encoded(codec, format, values, type), values.size())) {
      const bool fits = std::isfinite(stored_as(type, value));
      const bool overflows = format == CompressionFormat::bf16 && type == DataType::float32;
      EXPECT_TRUE(fits || overflows) << value;
    }
  });
}

// No decoded value is subnormal: processors differ in flushing subnormals to zero, so ranks would differ.
TEST(RoundTrip, DecodesNoSubnormals_FromScaleBlocksOfWideTypes) {
  CaseValues source(6);
  for_each_case([&](const Codec& codec, CompressionFormat format, DataType type) {
    if (compressed_bytes(format) == 2 * kCompressionGroup) return;
    std::vector<float> values;
    for (int exponent = -149; exponent < -80; ++exponent) append_group(values, source, std::ldexp(1.0f, exponent));
    for (const float value : decoded(codec, encoded(codec, format, values, type), values.size()))
      EXPECT_TRUE(value == 0 || std::isnormal(value)) << std::hexfloat << value;
  });
}

}  // namespace
}  // namespace tutti::test
