// The small-message protocol of a thread block of workers: a message is a row of 16-byte words, each with 8 bytes of
// data and its own flag, so that every worker sends and awaits words of its own. After the idea of NCCL's LL protocol,
// with a 16-byte word in place of its 8-byte one: the flag has room for the call's signature. Host and device compile
// this source.
#pragma once

#include <cstring>

#include "src/executor/ports.h"

namespace tutti {

inline constexpr std::uint32_t kWordBytes = 16;
inline constexpr std::uint32_t kWordData = 8;

// The data that a slot of so many bytes holds.
TUTTI_HOST_DEVICE constexpr std::uint64_t words_capacity(std::uint64_t slot_bytes) {
  return slot_bytes / kWordBytes * kWordData;
}

// How many words a message takes: one of no bytes has one, for its flag.
TUTTI_HOST_DEVICE inline std::uint64_t words_for(std::uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes + kWordData - 1) / kWordData;
}

// Worker `worker` of `workers` sends its share.
TUTTI_HOST_DEVICE inline void words_send(std::byte* slot, std::uint64_t flag, const std::byte* from,
                                         std::uint64_t bytes, std::uint32_t worker, std::uint32_t workers) {
  const std::uint64_t words = words_for(bytes);
  for (std::uint64_t w = worker; w < words; w += workers) {
    const std::uint64_t begin = w * kWordData;
    std::uint64_t data = 0;
    std::memcpy(&data, from + begin, bytes - begin < kWordData ? bytes - begin : kWordData);
    store_pair(reinterpret_cast<std::uint64_t*>(slot + w * kWordBytes), data, flag);
  }
}

// A word that arrives between the two looks is no mismatch: the second look sees a whole flag too, and what equals the
// one that is awaited only sends the worker to look again. Any other flag with this message's number is another call's:
// what the slot had before has another number, older or, if it was zeroed, none; and what comes after it is written
// once this worker has credited the slot.
//
// The worker's share is copied to `to`. `await` takes a poll and returns what it comes to; null if all has arrived,
// else the flag that is missing.
template <typename Await>
TUTTI_HOST_DEVICE inline const std::uint64_t* words_receive(const std::byte* slot, std::uint64_t flag, std::byte* to,
                                                            std::uint64_t bytes, std::uint32_t worker,
                                                            std::uint32_t workers, Await&& await) {
  const std::uint64_t words = words_for(bytes);
  for (std::uint64_t w = worker; w < words; w += workers) {
    const auto* pair = reinterpret_cast<const std::uint64_t*>(slot + w * kWordBytes);
    std::uint64_t data = 0;
    const Progress progress = await([&] {
      if (load_pair(pair, data) == flag) return Progress::done;
      return flag_mismatch(pair + 1, flag) ? Progress::mismatch : Progress::waiting;
    });
    if (progress != Progress::done) return pair + 1;
    const std::uint64_t begin = w * kWordData;
    std::memcpy(to + begin, &data, bytes - begin < kWordData ? bytes - begin : kWordData);
  }
  return nullptr;
}

}  // namespace tutti
