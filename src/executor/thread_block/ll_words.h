// The LL protocol of a thread block: a message is a sequence of 16-byte words. A word has two halves, each with 4 bytes
// of data and a flag of 4 bytes, as in NCCL's LL: a half that arrives alone is detected, so that a network card or a
// bus must deliver only 8 bytes at once. Every thread sends and receives words of its own. Host and device compile this
// source.
#pragma once

#include <cstring>

#include "src/executor/lane_operations.h"
#include "src/executor/thread_block/operands.h"

namespace tutti {

inline constexpr std::uint32_t kWordBytes = 16;
inline constexpr std::uint32_t kWordData = 8;

// Data capacity of a slot of `slot_bytes`.
TUTTI_HOST_DEVICE constexpr std::uint64_t ll_words_capacity(std::uint64_t slot_bytes) {
  return slot_bytes / kWordBytes * kWordData;
}

// Words of a message. An empty message has one word, for its flag.
TUTTI_HOST_DEVICE inline std::uint64_t ll_words_for(std::uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes + kWordData - 1) / kWordData;
}

// Load and store the data of word `w` of a message. Aligned words take one access.
TUTTI_HOST_DEVICE inline std::uint64_t load_word(const std::byte* message, std::uint64_t bytes, std::uint64_t w) {
  const std::byte* from = message + w * kWordData;
  const std::uint64_t left = bytes - w * kWordData;
  if (left >= kWordData && reinterpret_cast<std::uintptr_t>(from) % kWordData == 0)
    return load_unit<std::uint64_t>(from);
  std::uint64_t data = 0;
  std::memcpy(&data, from, left < kWordData ? left : kWordData);
  return data;
}
TUTTI_HOST_DEVICE inline void store_word(std::byte* message, std::uint64_t bytes, std::uint64_t w, std::uint64_t data) {
  std::byte* to = message + w * kWordData;
  const std::uint64_t left = bytes - w * kWordData;
  if (left >= kWordData && reinterpret_cast<std::uintptr_t>(to) % kWordData == 0) {
    store_unit(to, data);
  } else {
    std::memcpy(to, &data, left < kWordData ? left : kWordData);
  }
}

// The flags of both halves, the second one in the upper 32 bits. First: 31 bits of the message number and the
// direction, XORed with the signature. Second: 8 bits, which differ between successive messages and contain the rest of
// the number, and the signature.
TUTTI_HOST_DEVICE inline std::uint64_t word_flag(const LaneState& lane, Signature signature) {
  const std::uint64_t flag = line_flag(lane, signature);
  const std::uint64_t number = flag >> 24, call = flag & 0xffffff;
  const std::uint64_t rest = (number >> 32 ^ number >> 1) & 0xff;
  return (rest << 24 | call) << 32 | ((number ^ call << 8) & 0xffffffff);
}

// True if both halves have the expected message number and the same signature, which is another call's.
TUTTI_HOST_DEVICE inline bool word_flag_mismatch(std::uint64_t found, std::uint64_t expected) {
  const std::uint64_t differs = found ^ expected;
  const std::uint64_t call = differs >> 32;  // If the rests are equal, this is the difference of the signatures.
  return call != 0 && call <= 0xffffff && (differs & 0xffffffff) == call << 8;
}

// Stores a word of the message in `slot`.
TUTTI_HOST_DEVICE inline void send_word(std::byte* slot, std::uint64_t w, std::uint64_t data, std::uint64_t flag) {
  constexpr std::uint64_t kLow = 0xffffffff;
  store_pair(reinterpret_cast<std::uint64_t*>(slot + w * kWordBytes), (data & kLow) | flag << 32,
             data >> 32 | (flag & ~kLow));
}

// Loads a word at `pair`. Returns its flags; the data are valid if these are as expected.
TUTTI_HOST_DEVICE inline std::uint64_t receive_word(const std::uint64_t* pair, std::uint64_t& data) {
  constexpr std::uint64_t kLow = 0xffffffff;
  std::uint64_t first = 0;
  const std::uint64_t second = load_pair(pair, first);
  data = (first & kLow) | second << 32;
  return first >> 32 | (second & ~kLow);
}

// Sends the words of a thread.
TUTTI_HOST_DEVICE inline void ll_words_send(std::byte* slot, std::uint64_t flag, const std::byte* from,
                                            std::uint64_t bytes, ThreadGroup threads) {
  const std::uint64_t words = ll_words_for(bytes);
  for (std::uint64_t w = threads.index; w < words; w += threads.count) {
    const std::uint64_t data = bytes == 0 ? 0 : load_word(from, bytes, w);
    send_word(slot, w, data, flag);
  }
}

// Counts a message of `bytes` of data after all threads have sent their words, followed by a barrier. Posts it if a
// connection sends it to another host: the release makes the words visible before the counter.
TUTTI_HOST_DEVICE inline void count_ll_words(LaneState& lane, Signature signature, std::uint64_t bytes) {
  if (lane.view.words == nullptr) return count_message(lane);
  simple_post(lane, signature, ll_words_for(bytes) * kWordBytes);
}

// Copies this thread's words to `to`. `await` takes a poll function and returns its result, and stops the copy
// unless that is `done`.
//
// Flags with this message's number and another signature belong to another call. Earlier contents of the slot have a
// smaller number, or none if zeroed; a word of which one half is new is neither complete nor a mismatch. Later contents
// are written only after this thread has credited the slot.
template <typename Await>
TUTTI_HOST_DEVICE inline void ll_words_receive(const std::byte* slot, std::uint64_t flag, std::byte* to,
                                               std::uint64_t bytes, ThreadGroup threads, Await&& await) {
  const std::uint64_t words = ll_words_for(bytes);
  for (std::uint64_t w = threads.index; w < words; w += threads.count) {
    const auto* pair = reinterpret_cast<const std::uint64_t*>(slot + w * kWordBytes);
    std::uint64_t data = 0;
    const Progress progress = await([&] {
      const std::uint64_t found = receive_word(pair, data);
      if (found == flag) return Progress::done;
      return word_flag_mismatch(found, flag) ? Progress::mismatch : Progress::waiting;
    });
    if (progress != Progress::done) return;
    if (bytes > 0) store_word(to, bytes, w, data);
  }
}

}  // namespace tutti
