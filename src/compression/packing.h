// Packing of codes narrower than a byte. This generic version packs eight codes at a time with shifts, on any
// instruction set. packing_x86.h specialises it.
#pragma once

#include "src/base/vector.h"
#include "src/compression/format.h"

namespace tutti {

template <class Isa, int kBits>
struct Packing {
  TUTTI_KERNEL static void pack(const std::byte* codes, std::byte* encoded) {
#pragma GCC unroll 16
    for (unsigned i = 0; i < kCompressionGroup / 8; i += kWords) {
      Words x = load<std::uint64_t, kWords>(codes + i * 8);
      x = (x & kPair) | (x >> kGap & kPair << kBits);
      x = (x & kFour) | (x >> 2 * kGap & kFour << 2 * kBits);
      x = (x & kEight) | (x >> 4 * kGap & kEight << 4 * kBits);
      for (unsigned k = 0; k < kWords; ++k) {
        const std::uint64_t word = x[k];
        std::memcpy(encoded + (i + k) * kBits, &word, reach(i + k));
      }
    }
  }

  TUTTI_KERNEL static void unpack(const std::byte* encoded, std::byte* codes) {
#pragma GCC unroll 16
    for (unsigned i = 0; i < kCompressionGroup / 8; i += kWords) {
      Words x = {};
      for (unsigned k = 0; k < kWords; ++k) {
        std::uint64_t word = 0;
        std::memcpy(&word, encoded + (i + k) * kBits, reach(i + k));
        x[k] = word;
      }
      x = (x & kEight) | (x & kEight << 4 * kBits) << 4 * kGap;
      x = (x & kFour) | (x & kFour << 2 * kBits) << 2 * kGap;
      x = (x & kPair) | (x & kPair << kBits) << kGap;
      std::memcpy(codes + i * 8, &x, sizeof x);
    }
  }

 private:
  // Eight codes of a byte each form a word, which packs to kBits bytes. A load should match a preceding store of one
  // register in size and place, so that the store can be forwarded.
  static constexpr unsigned kWords = Isa::kBytes < 32 ? 1 : Isa::kBytes / 32;
  using Words = Vector<std::uint64_t, kWords>;
  static constexpr std::uint64_t kPair = 0x0001000100010001u * ((1u << kBits) - 1);
  static constexpr std::uint64_t kFour = 0x0000000100000001u * ((1u << 2 * kBits) - 1);
  static constexpr std::uint64_t kEight = (std::uint64_t{1} << 4 * kBits) - 1;
  static constexpr unsigned kGap = 8 - kBits;

  // Bytes that an access to a packed word may touch: eight, except for the last word of the group.
  TUTTI_KERNEL static constexpr unsigned reach(unsigned word) {
    return kBits == 4 || word == kCompressionGroup / 8 - 1 ? kBits : sizeof(std::uint64_t);
  }
};

}  // namespace tutti
