// Runs ranks as threads, each with its own interpreter. Lanes are in memory that is mapped once, so that
// ThreadSanitizer observes both ends of every lane.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/executor/test_call.h"
#include "transports/shm/shm_transport.h"

namespace tutti::test {

class ThreadedRanks {
 public:
  explicit ThreadedRanks(std::uint64_t seed) : random_(seed) {}

  // Runs a test call. Returns an empty string if all ranks have the expected results and unchanged inputs, else an
  // error.
  std::string run(const TestCall& test_call);

  // Returns the number of lanes with this form and protocol that were used.
  std::uint32_t lanes(LaneForm form, Protocol protocol) const {
    const auto found = lanes_.find({form, protocol});
    return found == lanes_.end() ? 0 : found->second;
  }

  // Returns the number of a rank's operations that ran from a compiled schedule.
  std::uint32_t brief_runs() const { return brief_runs_; }

 private:
  std::mt19937_64 random_;
  ShmTransport transport_{0};  // Transport of rank 0, which owns all memory.
  std::map<std::pair<LaneForm, Protocol>, std::uint32_t> lanes_;
  std::uint32_t brief_runs_ = 0;
};

}  // namespace tutti::test
