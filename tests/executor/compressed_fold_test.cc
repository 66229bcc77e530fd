// Folds of compressed messages against separate decoding, reduction and encoding of whole arrays.
#include "src/executor/cpu/compressed_fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace tutti::test {
namespace {

constexpr std::byte kGuard{0xa5};

// A buffer that begins this many bytes after a cache line, with guard bytes on either side.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes, std::size_t after = 0)
      : lines_(bytes / sizeof(Line) + 3), size_(bytes), begin_(sizeof(Line) + after) {
    std::fill_n(lines_.data()->bytes, lines_.size() * sizeof(Line), kGuard);
  }
  std::byte* data() { return lines_.data()->bytes + begin_; }
  std::size_t size() const { return size_; }
  bool intact() {
    const auto is_guard = [](std::byte byte) { return byte == kGuard; };
    std::byte* const first = lines_.data()->bytes;
    return std::all_of(first, data(), is_guard) &&
           std::all_of(data() + size_, first + lines_.size() * sizeof(Line), is_guard);
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  std::size_t size_, begin_;
};

std::size_t message_bytes(CompressionFormat format, std::size_t count) {
  return (count + kCompressionGroup - 1) / kCompressionGroup * compressed_bytes(format);
}

struct Setting {
  CompressionFormat format;
  DataType type;
  std::size_t count;
};

// 16-bit elements are messages without scales.
void to_memory(const Setting& at, const std::vector<float>& values, std::byte* memory) {
  if (at.type == DataType::float32) {
    std::memcpy(memory, values.data(), at.count * sizeof(float));
    return;
  }
  const Codec codec = find_codec(memory_format(at.type));
  std::vector<std::byte> groups(message_bytes(CompressionFormat::bf16, at.count));
  codec.encode(values.data(), at.count, groups.data(), range_of(at.type), nullptr);
  std::memcpy(memory, groups.data(), at.count * 2);
}

std::vector<float> from_memory(const Setting& at, const std::byte* memory) {
  std::vector<float> values(at.count);
  if (at.type == DataType::float32) {
    std::memcpy(values.data(), memory, at.count * sizeof(float));
    return values;
  }
  std::vector<std::byte> groups(message_bytes(CompressionFormat::bf16, at.count));
  std::memcpy(groups.data(), memory, at.count * 2);
  find_codec(memory_format(at.type)).decode(groups.data(), at.count, values.data());
  return values;
}

std::vector<std::byte> to_message(const Setting& at, const std::vector<float>& values) {
  std::vector<std::byte> message(message_bytes(at.format, at.count));
  find_codec(at.format).encode(values.data(), at.count, message.data(), range_of(at.type), nullptr);
  return message;
}

std::vector<float> from_message(const Setting& at, const std::byte* message) {
  std::vector<float> values(at.count);
  find_codec(at.format).decode(message, at.count, values.data());
  return values;
}

class CompressedFoldTest : public testing::Test {
 protected:
  std::vector<float> numbers(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    return values;
  }

  // Source k is a message if bit k of `encoded` is set. Returns the resulting message and memory.
  struct Delivered {
    std::vector<std::byte> message, memory;
  };
  Delivered fold(const Setting& at, RoundedStores rounded_stores, std::uint32_t encoded, bool complete) {
    std::vector<Guarded> sources;
    std::vector<std::uint8_t> marks;
    sum_.assign(at.count, 0);
    for (std::uint32_t k = 0; k < sources_; ++k) {
      const std::vector<float> values = numbers(at.count);
      const bool message = (encoded >> k & 1) != 0;
      sources.emplace_back(message ? message_bytes(at.format, at.count) : at.count * size_of(at.type));
      marks.push_back(message);
      if (message) std::memcpy(sources.back().data(), to_message(at, values).data(), sources.back().size());
      else to_memory(at, values, sources.back().data());
      const std::vector<float> read =
          message ? from_message(at, sources.back().data()) : from_memory(at, sources.back().data());
      for (std::size_t i = 0; i < at.count; ++i) sum_[i] = k == 0 ? read[i] : sum_[i] + read[i];
    }
    Guarded message(message_bytes(at.format, at.count)), memory(at.count * size_of(at.type), after_),
        second(message.size());
    std::vector<const std::byte*> from;
    for (Guarded& source : sources) from.push_back(source.data());
    std::byte* const to[] = {memory.data(), message.data(), second.data()};
    const std::uint8_t to_marks[] = {0, 1, 1};
    FoldArguments arguments;
    arguments.sources = from.data();
    arguments.source_count = sources_;
    arguments.targets = to;
    arguments.target_count = 3;
    arguments.count = at.count;
    arguments.complete = complete;
    arguments.ranks = 4;
    arguments.streamed_targets = streams_ ? ~std::uint64_t{0} : 0;
    CompressedFold(at.format, at.type, Reduction::sum, rounded_stores, *kernels_)(arguments, {marks.data(), to_marks});
    EXPECT_TRUE(message.intact() && memory.intact() && second.intact());
    EXPECT_EQ(std::memcmp(message.data(), second.data(), message.size()), 0);
    if (sources_ == 1 && encoded == 1) {
      EXPECT_EQ(std::memcmp(message.data(), from[0], message.size()), 0);
    }
    return {{message.data(), message.data() + message.size()}, {memory.data(), memory.data() + memory.size()}};
  }

  void expect_the_same(const Setting& at) {
    for (sources_ = 1; sources_ <= 3; ++sources_) {
      for (std::uint32_t encoded = 0; encoded < 1U << sources_; ++encoded) {
        for (const RoundedStores rounded_stores : {RoundedStores::none, RoundedStores::sums, RoundedStores::copies})
          expect_the_same(at, encoded, rounded_stores);
      }
    }
  }

  void expect_the_same(const Setting& at, std::uint32_t encoded, RoundedStores rounded_stores) {
    const bool complete = sources_ > 1;
    const Delivered got = fold(at, rounded_stores, encoded, complete);
    SCOPED_TRACE(std::string(name(at.format)) + " of " + name(at.type) + " " + std::to_string(at.count) + ", " +
                 std::to_string(sources_) + " sources, messages " + std::to_string(encoded));
    if (encoded != 1 || sources_ > 1) {
      ASSERT_EQ(got.message, to_message(at, sum_));
    }
    const bool kept = rounded_stores == RoundedStores::sums
                          ? complete
                          : rounded_stores == RoundedStores::copies && (encoded & 1) == 0;
    std::vector<std::byte> memory(got.memory.size());
    to_memory(at, kept ? from_message(at, got.message.data()) : sum_, memory.data());
    ASSERT_EQ(got.memory, memory);
    // The owner of a sum may send it again later: all ranks receive the same.
    if (kept) {
      ASSERT_EQ(to_message(at, from_memory(at, got.memory.data())), got.message);
    }
  }

  void expect_in_place(const Setting& at) {
    SCOPED_TRACE(std::string(name(at.format)) + " of " + name(at.type));
    std::vector<float> values = numbers(at.count);
    values[3] = values[300] = std::numeric_limits<float>::infinity();
    values[4] = -std::numeric_limits<float>::quiet_NaN();
    const std::vector<std::byte> message = to_message(at, numbers(at.count));
    Guarded memory(at.count * size_of(at.type)), sent(message.size());
    to_memory(at, values, memory.data());
    std::vector<float> sum = from_message(at, message.data());
    const std::vector<float> held = from_memory(at, memory.data());
    for (std::size_t i = 0; i < at.count; ++i) {
      sum[i] += held[i];
      if (std::isnan(sum[i])) sum[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const std::byte* const from[] = {message.data(), memory.data()};
    std::byte* const to[] = {sent.data(), memory.data()};
    const std::uint8_t marks[] = {1, 0};
    const FoldArguments arguments{
        .sources = from, .targets = to, .source_count = 2, .target_count = 2, .count = at.count};
    CompressedFold(at.format, at.type, Reduction::sum, RoundedStores::none, *kernels_)(arguments, {marks, marks});
    EXPECT_TRUE(memory.intact() && sent.intact());
    std::vector<std::byte> wanted(memory.size());
    to_memory(at, sum, wanted.data());
    EXPECT_EQ(std::memcmp(memory.data(), wanted.data(), wanted.size()), 0);
    wanted = to_message(at, sum);
    EXPECT_EQ(std::memcmp(sent.data(), wanted.data(), wanted.size()), 0);
  }

  std::mt19937 random_{7};
  const FoldKernels* kernels_ = nullptr;
  bool streams_ = false;
  std::size_t after_ = 0;  // Distance of the written memory from the beginning of a cache line.
  std::uint32_t sources_ = 1;
  std::vector<float> sum_;
};

// All kernels that this CPU supports.
void for_each_kernel(const std::function<void(const FoldKernels&)>& run) {
  const FoldKernelList list = fold_kernels();
  for (std::uint32_t k = 0; k < list.count; ++k) {
    SCOPED_TRACE(list.first[k].name);
    run(list.first[k]);
  }
}

TEST_F(CompressedFoldTest, EqualsSeparateDecodingReductionAndEncoding) {
  for_each_kernel([&](const FoldKernels& kernels) {
    kernels_ = &kernels;
    for (const int after : {-1, 0, 4, 16, 32}) {
      streams_ = after >= 0;
      after_ = static_cast<std::size_t>(std::max(after, 0));
      for (std::uint32_t f = 1; f < kCompressionFormats; ++f) {
        for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
          for (const std::size_t count : {1, 127, 128, 513, 1500})
            expect_the_same({static_cast<CompressionFormat>(f), type, count});
        }
      }
    }
  });
}

// Memory that is read and written, including sums that are not finite.
TEST_F(CompressedFoldTest, ReducesInPlace_WithoutSpreadingNan) {
  for_each_kernel([&](const FoldKernels& kernels) {
    kernels_ = &kernels;
    for (std::uint32_t f = 1; f < kCompressionFormats; ++f) {
      for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16})
        expect_in_place({static_cast<CompressionFormat>(f), type, 700});
    }
  });
}

// Any bytes can arrive; the values decoded from them may encode differently.
TEST_F(CompressedFoldTest, ForwardsReceivedBytes) {
  constexpr std::size_t kCount = 400;
  for_each_kernel([&](const FoldKernels& kernels) {
    for (std::uint32_t f = 1; f < kCompressionFormats; ++f) {
      const Setting at{static_cast<CompressionFormat>(f), DataType::float32, kCount};
      std::vector<std::byte> message(message_bytes(at.format, kCount));
      for (std::byte& byte : message) byte = static_cast<std::byte>(random_());
      Guarded sent(message.size()), memory(kCount * sizeof(float));
      const std::byte* const from[] = {message.data()};
      std::byte* const to[] = {memory.data(), sent.data()};
      const std::uint8_t marks[] = {0, 1};
      const FoldArguments arguments{
          .sources = from, .targets = to, .source_count = 1, .target_count = 2, .count = kCount};
      CompressedFold(at.format, at.type, Reduction::sum, RoundedStores::copies, kernels)(arguments, {marks + 1, marks});
      EXPECT_EQ(std::memcmp(sent.data(), message.data(), message.size()), 0) << name(at.format);
      const std::vector<float> meant = from_message(at, message.data());
      EXPECT_EQ(std::memcmp(memory.data(), meant.data(), memory.size()), 0) << name(at.format);
      EXPECT_TRUE(sent.intact() && memory.intact());
    }
  });
}

// Folds a message of ones and memory with this value into memory; sources in either order.
struct Pair {
  CompressionFormat format;
  Reduction reduction;
  RoundedStores rounded_stores;
  float memory;
  std::uint32_t own_at;
};
std::vector<float> fold_pair(const Pair& pair, const FoldKernels& kernels, FoldArguments arguments) {
  constexpr std::size_t kCount = 200;
  const std::vector<float> memory(kCount, pair.memory);
  const std::vector<std::byte> message =
      to_message({pair.format, DataType::float32, kCount}, std::vector<float>(kCount, 1));
  std::vector<float> result(kCount);
  const std::byte* from[] = {message.data(), message.data()};
  from[pair.own_at] = reinterpret_cast<const std::byte*>(memory.data());
  std::uint8_t marks[] = {1, 1};
  marks[pair.own_at] = 0;
  std::byte* const to[] = {reinterpret_cast<std::byte*>(result.data())};
  const std::uint8_t is_memory = 0;
  arguments.sources = from;
  arguments.source_count = 2;
  arguments.targets = to;
  arguments.target_count = 1;
  arguments.count = kCount;
  CompressedFold(pair.format, DataType::float32, pair.reduction, pair.rounded_stores, kernels)(arguments,
                                                                                               {marks, &is_memory});
  return result;
}

TEST_F(CompressedFoldTest, DividesAverages_BeforeRounding) {
  for_each_kernel([](const FoldKernels& kernels) {
    const FoldArguments whole{.complete = true, .ranks = 2};
    const std::vector<float> half =
        fold_pair({CompressionFormat::bf16, Reduction::avg, RoundedStores::sums, 3, 1}, kernels, whole);
    EXPECT_EQ(half, std::vector<float>(200, 2));
    const FoldArguments part{.complete = false, .ranks = 2};
    const std::vector<float> sum =
        fold_pair({CompressionFormat::bf16, Reduction::avg, RoundedStores::sums, 3, 1}, kernels, part);
    EXPECT_EQ(sum, std::vector<float>(200, 4));
  });
}

TEST_F(CompressedFoldTest, ScalesOwnOperandOnly) {
  for_each_kernel([](const FoldKernels& kernels) {
    for (const std::uint32_t own : {0U, 1U}) {
      const Pair pair{CompressionFormat::fp16, Reduction::pre_mul_sum, RoundedStores::none, 1, own};
      EXPECT_EQ(fold_pair(pair, kernels, {.own = own, .scale = 8}), std::vector<float>(200, 9)) << "own " << own;
    }
  });
}

}  // namespace
}  // namespace tutti::test
