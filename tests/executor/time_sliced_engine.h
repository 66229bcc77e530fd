// Engine that runs one launch at a time, like processes that share a GPU by time slices. Ranks never run concurrently.
#pragma once

#include "src/executor/thread_block/batch.h"
#include "tests/executor/engine.h"

namespace tutti::test {

class TimeSlicedEngine final : public Engine {
 public:
  // `slow`: rank that runs only when no other has progressed.
  explicit TimeSlicedEngine(std::uint32_t thread_count, std::uint32_t slow = ~0U)
      : thread_count_(thread_count), slow_(slow) {}
  std::pmr::memory_resource* memory() override { return std::pmr::get_default_resource(); }
  std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) override;

  std::uint64_t launches() const { return launches_; }  // Number of launches so far.

 private:
  struct Sharer {
    const std::vector<KernelCall>* calls = nullptr;
    std::size_t operation = 0;
    std::vector<ThreadBlockProgress> progress;  // [channel]: of the current operation.
    bool done() const { return operation == calls->size(); }
  };
  void launch(const Sharer& sharer, KernelWatch watch) const;
  // Launches the next time slice of a rank. Returns true if it progressed.
  bool run_time_slice(Sharer& sharer, KernelWatch watch);

  std::uint32_t thread_count_;  // Threads per thread block.
  std::uint32_t slow_;
  std::uint64_t launches_ = 0;
};

}  // namespace tutti::test
