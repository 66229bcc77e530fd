// Pseudo-random numbers for schedules: xorshift64*, cheap enough to ask for at every memory access.
#pragma once

#include <cstdint>

namespace tutti::ptx {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 0x1234567U) { next(), next(); }
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dU;
  }
  std::uint32_t below(std::uint32_t bound) {  // 0 to bound - 1.
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
  }
  bool one_in(std::uint32_t count) { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace tutti::ptx
