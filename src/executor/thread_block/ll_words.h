// The LL protocol of a thread block: a message is a sequence of 16-byte words with 8 bytes of data and an 8-byte flag
// each. Every thread sends and receives words of its own. Differs from NCCL's LL in the word size (16 instead of 8
// bytes), because the flag contains the call's signature. Host and device compile this source.
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

// Sends the words of a thread.
TUTTI_HOST_DEVICE inline void ll_words_send(std::byte* slot, std::uint64_t flag, const std::byte* from,
                                            std::uint64_t bytes, ThreadGroup threads) {
  const std::uint64_t words = ll_words_for(bytes);
  for (std::uint64_t w = threads.index; w < words; w += threads.count) {
    const std::uint64_t data = bytes == 0 ? 0 : load_word(from, bytes, w);
    store_pair(reinterpret_cast<std::uint64_t*>(slot + w * kWordBytes), data, flag);
  }
}

// Counts a message of `bytes` of data after all threads have sent their words, followed by a barrier. Posts it if a
// connection sends it to another host: the release makes the words visible before the counter.
TUTTI_HOST_DEVICE inline void count_ll_words(LaneState& lane, Signature signature, std::uint64_t bytes) {
  if (lane.view.words == nullptr) return count_message(lane);
  simple_post(lane, signature, ll_words_for(bytes) * kWordBytes);
}

// Copies this thread's words to `to`. `await` takes a poll function and returns its result. Returns null if all words
// have arrived, otherwise the address of a missing flag.
//
// A word that arrives between the two loads of the poll is no mismatch: the second load then sees the expected flag,
// and the thread polls again. Any other flag with this message's number belongs to another call. Earlier contents of
// the slot have a smaller number, or none if zeroed. Later contents are written only after this thread has credited the
// slot.
template <typename Await>
TUTTI_HOST_DEVICE inline const std::uint64_t* ll_words_receive(const std::byte* slot, std::uint64_t flag, std::byte* to,
                                                               std::uint64_t bytes, ThreadGroup threads,
                                                               Await&& await) {
  const std::uint64_t words = ll_words_for(bytes);
  for (std::uint64_t w = threads.index; w < words; w += threads.count) {
    const auto* pair = reinterpret_cast<const std::uint64_t*>(slot + w * kWordBytes);
    std::uint64_t data = 0;
    const Progress progress = await([&] {
      if (load_pair(pair, data) == flag) return Progress::done;
      return flag_mismatch(pair + 1, flag) ? Progress::mismatch : Progress::waiting;
    });
    if (progress != Progress::done) return pair + 1;
    if (bytes > 0) store_word(to, bytes, w, data);
  }
  return nullptr;
}

}  // namespace tutti
