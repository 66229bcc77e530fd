// Threads of the host that encode a group of elements together, like the threads of a warp. Emulates GroupThreads.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdint>

#include "src/compression/format.h"

namespace tutti::test {

class WarpOfThreads {
 public:
  static constexpr std::uint32_t kThreads = 32;
  template <std::uint32_t kScaleBlock>
  static constexpr std::uint32_t kGroups = kScaleBlock == kCompressionGroup ? 3 : 2;
  template <std::uint32_t kScaleBlock>
  static constexpr std::uint32_t kShare = kCompressionGroup / kThreads;

  WarpOfThreads(std::uint32_t thread, std::uint32_t thread_count) : thread_(thread), thread_count_(thread_count) {}
  std::uint32_t first() const { return thread_ / kThreads; }
  std::uint32_t step() const { return thread_count_ / kThreads; }
  std::uint32_t index() const { return thread_ % kThreads; }

  template <std::uint32_t kScaleBlock>
  std::uint32_t largest(std::uint32_t own) const {
    constexpr std::uint32_t kTogether = kScaleBlock / kShare<kScaleBlock>;
    owned()[thread_] = own;
    join();
    std::uint32_t max = 0;
    for (std::uint32_t k = 0; k < kTogether; ++k) max = std::max(max, owned()[thread_ / kTogether * kTogether + k]);
    join();
    return max;
  }
  bool all(bool own) const {
    owned()[thread_] = own ? 1 : 0;
    join();
    std::uint32_t so = 0;
    for (std::uint32_t k = 0; k < kThreads; ++k) so += owned()[k];
    join();
    return so == kThreads;
  }
  void join() const { barrier().arrive_and_wait(); }

 private:
  static std::uint32_t* owned() {
    static std::uint32_t owned[kThreads];
    return owned;
  }
  static std::barrier<>& barrier() {
    static std::barrier<> barrier(kThreads);
    return barrier;
  }

  const std::uint32_t thread_, thread_count_;
};

}  // namespace tutti::test
