// How the collectives of a rank ran, for the user. One thread, which runs the calls, writes; any thread reads.
#pragma once

#include <atomic>

#include "src/communicator/call/backend.h"
#include "src/communicator/call/compression_counter.h"
#include "src/communicator/host/connected_plans.h"

namespace tutti {

class RunStatistics {
 public:
  // Records the plan of the last call; null: it moved no messages. Plans do not change.
  void show_plan(const ConnectedPlan* plan) { plan_.store(plan, std::memory_order_release); }
  // Records a compressed call.
  void add_compressed(const Carried& carried, Rounding rounding) {
    compression_.add(carried);
    rounding_.store(rounding, std::memory_order_relaxed);
  }

  LastRun last_run() const;
  // Returns the statistics, given the number of all calls of the rank.
  CompressionStatistics compression(std::uint64_t calls) const { return compression_.of(calls); }

 private:
  std::atomic<const ConnectedPlan*> plan_{nullptr};
  std::atomic<Rounding> rounding_{Rounding::nearest};
  CompressionCounter compression_;
};

inline LastRun RunStatistics::last_run() const {
  const ConnectedPlan* plan = plan_.load(std::memory_order_acquire);
  if (plan == nullptr) return {};
  const CompressionFormat compression = plan->key.compression;
  return {.algorithm = plan->key.algorithm->name(),
          .protocol = plan->slot_bytes == 0 ? "" : name(plan->key.protocol),
          .compression = name(compression),
          .error = compression == CompressionFormat::none
                       ? 0
                       : compression_error_after(compression, plan->roundings, rounding_)};
}

}  // namespace tutti
