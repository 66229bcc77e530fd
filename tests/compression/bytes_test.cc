// Codecs access all their bytes and no others, for any contents. AddressSanitizer checks the reads.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/compression/codec_kernels.h"
#include "tests/compression/cases.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kCounts[] = {0, 1, 2, 3, 31, 32, 33, 97, 126, 127, 128, 129, 255, 256, 383, 1000};

std::vector<Codec> all_codecs(CompressionFormat format) {
  const CodecKernelList list = codec_kernels();
  std::vector<Codec> codecs;
  for (std::uint32_t k = 0; k < list.count; ++k) codecs.push_back(list.first[k].find_codec(format));
  return codecs;
}

// An allocation of exactly these bytes, without alignment. The sanitizer guards the memory beside it.
class Exact {
 public:
  explicit Exact(std::uint64_t bytes) : memory_(new std::byte[bytes + 1]), bytes_(bytes) {
    std::fill(memory_, memory_ + bytes + 1, std::byte{0xa5});
  }
  ~Exact() { delete[] memory_; }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  std::byte* data() { return memory_ + 1; }  // Ends where the memory ends.
  std::uint64_t size() const { return bytes_; }

 private:
  std::byte* memory_;
  std::uint64_t bytes_;
};

TEST(CompressedBytes, AreDecoded_WhateverTheirContents) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  for (const CompressionFormat format : compression_formats()) {
    for (const Codec& codec : all_codecs(format)) {
      for (const std::uint64_t count : kCounts) {
        for (int round = 0; round < 20; ++round) {
          Exact compression((count + kCompressionGroup - 1) / kCompressionGroup * compressed_bytes(format));
          const auto all = static_cast<std::byte>(source.word());
          for (std::uint64_t i = 0; i < compression.size(); ++i)
            compression.data()[i] = round < 4 ? all : static_cast<std::byte>(source.word());
          std::vector<float> values(count + 1, 12345.0f);
          values.shrink_to_fit();
          codec.decode(compression.data(), count, values.data());
          EXPECT_EQ(values[count], 12345.0f) << name(format) << " of " << count;
        }
      }
    }
  }
}

// Encodes over two different backgrounds. Equal results prove that each byte was written, and no byte beyond.
TEST(CompressedBytes, AreAllWritten) {
  CaseValues source(2);
  for (const CompressionFormat format : compression_formats()) {
    for (const Codec& codec : all_codecs(format)) {
      for (const std::uint64_t count : kCounts) {
        std::vector<float> values(count);
        for (float& value : values) value = source.normal();
        const std::uint64_t bytes = (count + kCompressionGroup - 1) / kCompressionGroup * compressed_bytes(format);
        Exact exact(bytes);
        codec.encode(values.data(), count, exact.data(), range_of(DataType::float32), nullptr);
        std::vector<std::byte> other(bytes + 64, std::byte{0x5a});
        codec.encode(values.data(), count, other.data(), range_of(DataType::float32), nullptr);
        EXPECT_TRUE(std::equal(exact.data(), exact.data() + bytes, other.begin())) << name(format) << " of " << count;
        const auto end = other.begin() + static_cast<std::ptrdiff_t>(bytes);
        EXPECT_EQ(std::count(end, other.end(), std::byte{0x5a}), 64) << name(format) << " of " << count;
      }
    }
  }
}

// Missing elements count as 0 and do not affect the scale.
TEST(CompressedBytes, OfShortGroup_EqualThoseOfZeroPaddedGroup) {
  CaseValues source(3);
  for (const CompressionFormat format : compression_formats()) {
    for (const Codec& codec : all_codecs(format)) {
      for (const std::uint64_t count : kCounts) {
        std::vector<float> values(count);
        for (float& value : values) value = source.normal();
        const auto compression = encoded(codec, format, values, DataType::float32);
        values.resize((count + kCompressionGroup - 1) / kCompressionGroup * kCompressionGroup);
        EXPECT_EQ(encoded(codec, format, values, DataType::float32), compression) << name(format) << " of " << count;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
