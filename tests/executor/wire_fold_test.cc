// Folds of messages in wire formats, against the same done with whole arrays one after the other.
#include "src/executor/cpu/wire_fold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace tutti {
namespace {

constexpr std::byte kGuard{0xa5};

// A buffer with some bytes behind it that nobody may write.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : bytes_(bytes + 64, kGuard) {}
  std::byte* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size() - 64; }
  bool intact() const {
    for (std::size_t i = size(); i < bytes_.size(); ++i) {
      if (bytes_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

std::size_t message_bytes(WireFormat format, std::size_t count) {
  return (count + kWireGroup - 1) / kWireGroup * wire_bytes(format);
}

struct Setting {
  WireFormat format;
  DataType type;
  std::size_t count;
};

// Elements of 16 bits are messages without scales.
void to_memory(const Setting& at, const std::vector<float>& values, std::byte* memory) {
  if (at.type == DataType::float32) {
    std::memcpy(memory, values.data(), at.count * sizeof(float));
    return;
  }
  const Codec codec = find_codec(at.type == DataType::float16 ? WireFormat::fp16 : WireFormat::bf16);
  std::vector<std::byte> groups(message_bytes(WireFormat::bf16, at.count));
  codec.encode(values.data(), at.count, groups.data(), range_of(at.type), nullptr);
  std::memcpy(memory, groups.data(), at.count * 2);
}

std::vector<float> from_memory(const Setting& at, const std::byte* memory) {
  std::vector<float> values(at.count);
  if (at.type == DataType::float32) {
    std::memcpy(values.data(), memory, at.count * sizeof(float));
    return values;
  }
  std::vector<std::byte> groups(message_bytes(WireFormat::bf16, at.count));
  std::memcpy(groups.data(), memory, at.count * 2);
  find_codec(at.type == DataType::float16 ? WireFormat::fp16 : WireFormat::bf16)
      .decode(groups.data(), at.count, values.data());
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

class WireFolds : public testing::Test {
 protected:
  std::vector<float> numbers(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    return values;
  }

  // Source k is a message where bit k of `encoded` says so. Returns what a message and memory get.
  struct Delivered {
    std::vector<std::byte> message, memory;
  };
  Delivered fold(const Setting& at, Keeps keeps, std::uint32_t encoded, bool complete) {
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
    Guarded message(message_bytes(at.format, at.count)), memory(at.count * size_of(at.type)), second(message.size());
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
    WireFold(at.format, at.type, Reduction::sum, keeps)(arguments, {marks.data(), to_marks});
    EXPECT_TRUE(message.intact() && memory.intact() && second.intact());
    EXPECT_EQ(std::memcmp(message.data(), second.data(), message.size()), 0);
    if (sources_ == 1 && encoded == 1) {
      EXPECT_EQ(std::memcmp(message.data(), from[0], message.size()), 0);
    }
    return {{message.data(), message.data() + message.size()}, {memory.data(), memory.data() + memory.size()}};
  }

  std::mt19937 random_{7};
  std::uint32_t sources_ = 1;
  std::vector<float> sum_;
};

TEST_F(WireFolds, AreTheSameAsDecodingAddingAndEncodingOneAfterTheOther) {
  for (std::uint32_t f = 1; f < kWireFormats; ++f) {
    for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
      for (const std::size_t count : {1, 127, 128, 513, 1500}) {
        const Setting at{static_cast<WireFormat>(f), type, count};
        for (sources_ = 1; sources_ <= 3; ++sources_) {
          for (std::uint32_t encoded = 0; encoded < 1U << sources_; ++encoded) {
            for (const Keeps keeps : {Keeps::nothing, Keeps::sums, Keeps::copies}) {
              const bool complete = sources_ > 1;
              const Delivered got = fold(at, keeps, encoded, complete);
              SCOPED_TRACE(std::string(name(at.format)) + " of " + name(type) + " " + std::to_string(count) + ", " +
                           std::to_string(sources_) + " sources, messages " + std::to_string(encoded));
              if (encoded != 1 || sources_ > 1) {
                ASSERT_EQ(got.message, to_message(at, sum_));
              }
              const bool kept = keeps == Keeps::sums ? complete : keeps == Keeps::copies && (encoded & 1) == 0;
              std::vector<std::byte> memory(got.memory.size());
              to_memory(at, kept ? from_message(at, got.message.data()) : sum_, memory.data());
              ASSERT_EQ(got.memory, memory);
              // Who owns a sum may send it again later: all get the same.
              if (kept) {
                ASSERT_EQ(to_message(at, from_memory(at, got.memory.data())), got.message);
              }
            }
          }
        }
      }
    }
  }
}

TEST_F(WireFolds, DivideAveragesBeforeTheyRound) {
  const std::vector<float> ones(200, 1), threes(200, 3);
  const Setting at{WireFormat::bf16, DataType::float32, 200};
  const std::vector<std::byte> message = to_message(at, ones);
  std::vector<float> result(200);
  const std::byte* const from[] = {message.data(), reinterpret_cast<const std::byte*>(threes.data())};
  std::byte* const to[] = {reinterpret_cast<std::byte*>(result.data())};
  const std::uint8_t marks[] = {1, 0};
  FoldArguments arguments;
  arguments.sources = from;
  arguments.source_count = 2;
  arguments.targets = to;
  arguments.target_count = 1;
  arguments.count = 200;
  arguments.complete = true;
  arguments.ranks = 2;
  WireFold(at.format, at.type, Reduction::avg, Keeps::sums)(arguments, {marks, marks + 1});
  EXPECT_EQ(result, std::vector<float>(200, 2));
}

TEST_F(WireFolds, ScaleWhatIsTheRanksOwnAlone) {
  const std::vector<float> ones(200, 1);
  const Setting at{WireFormat::fp16, DataType::float32, 200};
  const std::vector<std::byte> message = to_message(at, ones);
  for (const std::uint32_t own : {0U, 1U}) {
    std::vector<float> result(200);
    const std::byte* from[] = {message.data(), message.data()};
    from[own] = reinterpret_cast<const std::byte*>(ones.data());
    std::uint8_t marks[] = {1, 1};
    marks[own] = 0;
    std::byte* const to[] = {reinterpret_cast<std::byte*>(result.data())};
    const std::uint8_t memory = 0;
    FoldArguments arguments;
    arguments.sources = from;
    arguments.source_count = 2;
    arguments.targets = to;
    arguments.target_count = 1;
    arguments.count = 200;
    arguments.own = own;
    arguments.scale = 8;
    WireFold(at.format, at.type, Reduction::pre_mul_sum, Keeps::nothing)(arguments, {marks, &memory});
    EXPECT_EQ(result, std::vector<float>(200, 9)) << "own " << own;
  }
}

}  // namespace
}  // namespace tutti
