// All ranks of a few calls, each a thread with an interpreter of its own. Lanes are in memory that is mapped once, so
// ThreadSanitizer sees both ends of every lane.
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

  // Empty if all ranks end with the expected results and unchanged inputs.
  std::string run(const TestCall& test_call);

  // Number of lanes used of a form and protocol.
  std::uint32_t lanes(LaneForm form, Protocol protocol) const {
    const auto found = lanes_.find({form, protocol});
    return found == lanes_.end() ? 0 : found->second;
  }

  // Number of a rank's operations that ran from a compiled schedule.
  std::uint32_t brief_runs() const { return brief_runs_; }

 private:
  std::mt19937_64 random_;
  ShmTransport transport_{0};  // The transport of one rank, which owns all memory.
  std::map<std::pair<LaneForm, Protocol>, std::uint32_t> lanes_;
  std::uint32_t brief_runs_ = 0;
};

}  // namespace tutti::test
