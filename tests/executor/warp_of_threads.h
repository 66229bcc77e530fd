// Threads of the host that encode a group of elements together, like the threads of a warp. Emulates GroupThreads.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdint>

#include "src/compression/format.h"

namespace tutti::test {

class WarpOfThreads {
 public:
  static constexpr std::uint32_t kWorkers = 32;
  template <std::uint32_t kScaleBlock>
  static constexpr std::uint32_t kGroups = kScaleBlock == kCompressionGroup ? 3 : 2;
  template <std::uint32_t kScaleBlock>
  static constexpr std::uint32_t kShare = kCompressionGroup / kWorkers;

  WarpOfThreads(std::uint32_t worker, std::uint32_t workers) : worker_(worker), workers_(workers) {}
  std::uint32_t first() const { return worker_ / kWorkers; }
  std::uint32_t step() const { return workers_ / kWorkers; }
  std::uint32_t index() const { return worker_ % kWorkers; }

  template <std::uint32_t kScaleBlock>
  std::uint32_t largest(std::uint32_t own) const {
    constexpr std::uint32_t kTogether = kScaleBlock / kShare<kScaleBlock>;
    owned()[worker_] = own;
    join();
    std::uint32_t most = 0;
    for (std::uint32_t k = 0; k < kTogether; ++k) most = std::max(most, owned()[worker_ / kTogether * kTogether + k]);
    join();
    return most;
  }
  bool all(bool own) const {
    owned()[worker_] = own ? 1 : 0;
    join();
    std::uint32_t so = 0;
    for (std::uint32_t k = 0; k < kWorkers; ++k) so += owned()[k];
    join();
    return so == kWorkers;
  }
  void join() const { barrier().arrive_and_wait(); }

 private:
  static std::uint32_t* owned() {
    static std::uint32_t owned[kWorkers];
    return owned;
  }
  static std::barrier<>& barrier() {
    static std::barrier<> barrier(kWorkers);
    return barrier;
  }

  const std::uint32_t worker_, workers_;
};

}  // namespace tutti::test
