// Calls of ranks that a test launches on a device separately, and the reports of their thread blocks.
#pragma once

#include <memory_resource>
#include <string_view>

#include "tests/executor/device_memory.h"
#include "tests/executor/device_rig.h"
#include "tests/executor/rank_harness.h"

namespace tutti::test {

// Returns the fused plans of an algorithm for all ranks.
std::vector<Plan> plans_of(const Problem& problem, std::string_view algorithm);

// Words that the thread blocks of a rank write, and the word that stops them.
struct BlockWords {
  KernelProgress progress;
  FailedWords failed;

  // The timeout is short, so that a hang on a GPU takes little time from other tests.
  KernelWatch watch(std::uint64_t number) {
    return {.failed = &failed,
            .timeout_ns = 20'000'000'000,
            .kernel_progress = &progress,
            .number = number,
            .progress = nullptr};
  }
};

// Engine that runs test calls on a device: one launch per operation for all ranks, or a stream for each rank.
class DeviceEngine final : public Engine {
 public:
  enum class Streams { one, one_per_rank };

  DeviceEngine(DeviceRig& rig, Streams streams)
      : rig_(rig), reach_(rig.device()), lanes_(rig.device()), streams_(streams) {}
  std::pmr::memory_resource* memory() override { return &reach_; }
  // Lanes are in device memory, because only there are accesses of LL words and LL128 rows atomic.
  std::pmr::memory_resource* lanes() override { return &lanes_; }
  std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) override;

 private:
  DeviceRig& rig_;
  DeviceReach reach_;
  DeviceArena lanes_;
  Streams streams_;
};

// Calls of all ranks of a test call. Each rank writes its own report and number.
class DeviceCalls {
 public:
  explicit DeviceCalls(DeviceRig& rig) : rig_(rig), engine_(rig, DeviceEngine::Streams::one), words_(1, &reach()) {}
  ~DeviceCalls();  // Requires that no call is running.
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  // Prepares a collective with an algorithm. `test_call` has the other parameters.
  void prepare(const Problem& problem, std::string_view algorithm, const TestCall& test_call);

  // Returns the call of a rank, with an image in device memory and the number operation + 1. Must not be called while a
  // thread block waits for a peer, because allocation may wait for the device.
  BatchCall call(Rank rank, std::uint32_t operation = 0);
  // Returns the call with its state in device memory instead of shared memory.
  BatchCall in_workspace(BatchCall call);
  Status launch(const std::vector<BatchCall>& calls, DeviceStream stream);

  RankSet& rank_set() { return *rank_set_; }
  // These words are written by thread blocks and may be read while they run.
  KernelReport& report(Rank rank) { return words_[rank].progress.report; }
  std::uint64_t passed(Rank rank) const { return load_acquire(&words_[rank].progress.passed); }
  void fail() { words_[0].failed.set(); }  // Stops all thread blocks.

 private:
  std::pmr::memory_resource& reach() { return *engine_.memory(); }
  std::byte* take(std::size_t bytes);

  DeviceRig& rig_;
  DeviceEngine engine_;
  TestCall test_call_;
  ShmTransport transport_{0};
  std::unique_ptr<RankSet> rank_set_;
  std::vector<std::vector<KernelCall>> calls_;
  std::pmr::vector<BlockWords> words_;  // [rank]; all ranks watch words_[0].failed.
  std::vector<std::byte*> memory_;      // Allocations of device memory.
};

}  // namespace tutti::test
