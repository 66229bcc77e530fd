// Atomic access to words of the process's memory, which other threads and processes may access at the same time.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "src/base/atomic.h"
#include "tests/ptx/machine/code.h"

namespace tutti::ptx {

template <typename T>
std::uint64_t load_word(std::uint64_t address, std::memory_order order) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(address)).load(order);
}
template <typename T>
void store_word(std::uint64_t address, std::uint64_t value, std::memory_order order) {
  std::atomic_ref<T>(*reinterpret_cast<T*>(address)).store(static_cast<T>(value), order);
}

// `bytes` is 1, 2, 4 or 8.
inline std::uint64_t load_word(std::uint64_t address, unsigned bytes, std::memory_order order) {
  switch (bytes) {
    case 1: return load_word<std::uint8_t>(address, order);
    case 2: return load_word<std::uint16_t>(address, order);
    case 4: return load_word<std::uint32_t>(address, order);
    default: return load_word<std::uint64_t>(address, order);
  }
}
inline void store_word(std::uint64_t address, unsigned bytes, std::uint64_t value, std::memory_order order) {
  switch (bytes) {
    case 1: return store_word<std::uint8_t>(address, value, order);
    case 2: return store_word<std::uint16_t>(address, value, order);
    case 4: return store_word<std::uint32_t>(address, value, order);
    default: return store_word<std::uint64_t>(address, value, order);
  }
}

// Adjacent words.
struct Words {
  std::uint64_t address = 0;
  unsigned bytes = 0;
  bool at_once = false;  // Both words of 16 bytes are accessed at once.
};

inline void load_words(const Words& words, std::uint64_t* to, std::memory_order order) {
  if (words.at_once && words.bytes == 16) {
    to[1] = load_pair(reinterpret_cast<const std::uint64_t*>(words.address), to[0]);
    return;
  }
  const unsigned unit = words.bytes < 8 ? words.bytes : 8;
  for (unsigned done = 0; done < words.bytes; done += 8) *to++ = load_word(words.address + done, unit, order);
}

inline void store_words(const Words& words, const std::uint64_t* from, std::memory_order order) {
  if (words.at_once && words.bytes == 16)
    return store_pair(reinterpret_cast<std::uint64_t*>(words.address), from[0], from[1]);
  const unsigned unit = words.bytes < 8 ? words.bytes : 8;
  for (unsigned done = 0; done < words.bytes; done += 8) store_word(words.address + done, unit, *from++, order);
}

// The granule of 8 bytes that contains an address.
inline std::uint64_t load_granule(std::uint64_t address) {
  return load_word<std::uint64_t>(address & ~7ULL, std::memory_order_relaxed);
}

// Mask of the bytes of a granule that an access of `bytes` at `address` touches. The access lies within the granule.
inline std::uint8_t byte_mask(std::uint64_t address, unsigned bytes) {
  return bytes >= 8 ? std::uint8_t{0xff} : static_cast<std::uint8_t>(((1U << bytes) - 1) << (address & 7));
}

// Value that an atomic instruction stores.
std::uint64_t result_of(const Instruction& in, std::uint64_t old, std::uint64_t operand, std::uint64_t other);
// Executes an atomic instruction on a word of the process; `other` is the new value of cas. Returns the old value.
std::uint64_t change_word(const Instruction& in, std::uint64_t address, std::uint64_t operand, std::uint64_t other);

}  // namespace tutti::ptx
