// Words of LL of which one half has arrived, and words of other calls.
#include "src/executor/thread_block/ll_words.h"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <vector>

namespace tutti::test {
namespace {

struct Word {
  alignas(16) std::array<std::uint64_t, 2> halves{};
};

std::uint64_t flag_of(std::uint64_t number, std::uint32_t call) {
  LaneState lane;
  lane.next = number - 1;  // Flags count from 1.
  return word_flag(lane, {call});
}

Word word_of(std::uint64_t number, std::uint32_t call, std::uint64_t data) {
  Word word;
  send_word(reinterpret_cast<std::byte*>(word.halves.data()), 0, data, flag_of(number, call));
  return word;
}

// The state of a word that is awaited.
enum class Found : std::uint8_t { waiting, complete, of_another_call };
Found found_in(const Word& word, std::uint64_t number, std::uint32_t call) {
  std::uint64_t data = 0;
  const std::uint64_t found = receive_word(word.halves.data(), data);
  if (found == flag_of(number, call)) return Found::complete;
  return word_flag_mismatch(found, flag_of(number, call)) ? Found::of_another_call : Found::waiting;
}

constexpr std::uint64_t kNumbers[] = {9, 255, 256, 257, 512, 1ULL << 31, (1ULL << 31) + 1, (1ULL << 38) + 256};
constexpr std::uint32_t kCall = 0xabcdef, kOther = 0x123456;

TEST(LlWords, CarryDataAndFlags) {
  for (const std::uint64_t number : kNumbers) {
    for (const std::uint64_t data : {0ULL, ~0ULL, 0x0123456789abcdefULL}) {
      const Word word = word_of(number, kCall, data);
      std::uint64_t received = 0;
      EXPECT_EQ(receive_word(word.halves.data(), received), flag_of(number, kCall));
      EXPECT_EQ(received, data);
    }
    EXPECT_EQ(found_in(word_of(number, kCall, 7), number, kCall), Found::complete);
    EXPECT_EQ(found_in(word_of(number, kOther, 7), number, kCall), Found::of_another_call) << number;
    for (const std::uint64_t before : {1U, 4U, 8U}) {
      EXPECT_EQ(found_in(word_of(number - before, kCall, 7), number, kCall), Found::waiting) << number;
      EXPECT_EQ(found_in(word_of(number - before, kOther, 7), number, kCall), Found::waiting) << number;
    }
    EXPECT_EQ(found_in(Word(), number, kCall), Found::waiting) << "zeroed memory";
  }
}

// Each half may arrive first. The other one is zeroed memory, or an earlier message of the slot, also one whose number
// ends with the same bits.
TEST(LlWords, AreAwaited_WhenOneHalfHasArrived) {
  for (const std::uint64_t number : kNumbers) {
    const Word arrived = word_of(number, kCall, 7);
    std::vector<Word> earlier = {Word()};
    for (const std::uint64_t before : {4ULL, 8ULL, 256ULL, 65536ULL, 1ULL << 31}) {
      if (before >= number) continue;
      earlier.push_back(word_of(number - before, kOther, 5));
      if (before % 256 != 0) earlier.push_back(word_of(number - before, kCall, 5));
    }
    for (const Word& old : earlier) {
      for (const std::size_t first : {0U, 1U}) {
        Word word = old;
        word.halves[first] = arrived.halves[first];
        EXPECT_EQ(found_in(word, number, kCall), Found::waiting) << number << ", half " << first;
        EXPECT_EQ(found_in(word, number, kCall + 1), Found::waiting) << number << ", of another call, half " << first;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
