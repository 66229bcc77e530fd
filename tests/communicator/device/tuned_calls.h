// Repeated calls on devices with autotuning, and a record of their choices.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {

inline CommunicatorOptions autotuning(Tune tune, const std::string& file = "") {
  CommunicatorOptions options;
  options.memory = Memory::cuda;
  options.tune = tune;
  options.tune_file = file;
  options.version = "test";
  options.timeout_ms = 60'000;
  return options;
}

inline std::string way_of(const Communicator& rank) {
  const LastRun ran = rank.last_run();
  return std::string(ran.algorithm) + " " + ran.protocol;
}

inline std::set<std::string> distinct(const std::vector<std::string>& ways) { return {ways.begin(), ways.end()}; }

// Parameters of calls of `all` ranks, of which the first one of this process is `first`.
struct TunedShape {
  Collective collective = Collective::all_reduce;
  std::uint64_t count = 40;
  DataType type = DataType::int32;
  Rank first = 0;
  Rank all = 2;
};

// Calls with the same parameters, without groups.
class TunedCalls {
 public:
  TunedCalls(DeviceRanks& ranks, const TunedShape& shape) : ranks_(ranks), shape_(shape) {
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      inputs_.push_back(ranks.take<std::int32_t>(shape.count * shape.all));
      outputs_.push_back(ranks.take<std::int32_t>(shape.count * shape.all));
      for (std::uint64_t i = 0; i < shape.count && shape.type == DataType::int32; ++i)
        inputs_[rank][i] = item(shape.first + rank, i);
    }
    ways_.resize(ranks.size());
  }

  DeviceCall call(Rank rank) {
    return ranks_.call(rank, call_of(shape_.collective, shape_.type, shape_.count, inputs_[rank], outputs_[rank]));
  }

  // Enqueues `times` calls of one rank without waiting.
  void enqueue_of(Rank rank, int times) {
    for (int i = 0; i < times; ++i) {
      const DeviceCall one = call(rank);
      const Status status = enqueue({&one, 1});
      ASSERT_TRUE(status.ok()) << status.message();
      ways_[rank].push_back(way_of(ranks_[rank]));
    }
  }

  // Runs `times` calls of all ranks and waits for each of them.
  void run(int times) {
    for (int i = 0; i < times && !testing::Test::HasFatalFailure(); ++i) {
      for (Rank rank = 0; rank < ranks_.size(); ++rank) enqueue_of(rank, 1);
      ranks_.synchronize();
    }
  }

  const std::vector<std::string>& ways(Rank rank) const { return ways_[rank]; }
  void expect_alike() const {
    for (Rank rank = 1; rank < ways_.size(); ++rank) EXPECT_EQ(ways_[rank], ways_[0]) << "rank " << rank;
  }
  // Returns an error in the result of the last call, or an empty string.
  std::string error() const {
    const std::uint64_t blocks = shape_.collective == Collective::all_gather ? shape_.all : 1;
    for (Rank rank = 0; rank < ranks_.size(); ++rank) {
      for (std::uint64_t i = 0; i < blocks * shape_.count; ++i) {
        if (outputs_[rank][i] != wanted(i)) return "element " + std::to_string(i) + " of rank " + std::to_string(rank);
      }
    }
    return "";
  }

 private:
  // Input value of a rank. wanted() is the expected result.
  static std::int32_t item(Rank rank, std::uint64_t i) {
    return static_cast<std::int32_t>(100'000 * rank + i % 9973 + 1);
  }
  std::int32_t wanted(std::uint64_t i) const {
    if (shape_.collective == Collective::all_gather) return item(static_cast<Rank>(i / shape_.count), i % shape_.count);
    if (shape_.collective == Collective::broadcast) return item(0, i);
    std::int32_t sum = 0;
    for (Rank rank = 0; rank < shape_.all; ++rank) sum += item(rank, i);
    return sum;
  }

  DeviceRanks& ranks_;
  const TunedShape shape_;
  std::vector<std::int32_t*> inputs_, outputs_;
  std::vector<std::vector<std::string>> ways_;  // [rank][call]: algorithm and protocol.
};

}  // namespace tutti::test
