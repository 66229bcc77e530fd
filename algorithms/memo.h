// Caches the last few compositions, because a plan requests the same one for every round of every rank.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "src/plan/sequence.h"

namespace tutti {

// Thread-safe.
class Memo {
 public:
  template <typename Make>
  std::shared_ptr<const Composition> get(const Problem& problem, Make make) {
    {
      const std::lock_guard lock(mutex_);
      for (const Entry& entry : entries_) {
        if (entry.composition != nullptr && entry.problem == problem) return entry.composition;
      }
    }
    auto composition = std::make_shared<const Composition>(make());  // Outside the lock, because compositions may nest.
    const std::lock_guard lock(mutex_);
    entries_[oldest_] = {problem, composition};
    oldest_ = (oldest_ + 1) % entries_.size();
    return composition;
  }

 private:
  struct Entry {
    Problem problem;
    std::shared_ptr<const Composition> composition;
  };
  std::mutex mutex_;
  std::array<Entry, 4> entries_;
  std::size_t oldest_ = 0;
};

}  // namespace tutti
