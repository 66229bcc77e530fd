// Groups of collectives of one rank: calls that run in order in a single launch, and calls that need launches of their
// own.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "tests/communicator/device/islands.h"

namespace tutti::test {
namespace {

constexpr Rank kRanks = 2;

std::uint32_t launches(DeviceRanks& own) {
  return dynamic_cast<const HostDevice&>(own.rig().device()).plain_launches();
}

// All-reduces of one rank with an island of its own. Call k has `counts[k]` elements.
class Sums {
 public:
  Sums(DeviceRanks& own, Rank rank, const std::vector<std::uint64_t>& counts) : own_(own) {
    for (const std::uint64_t count : counts) {
      inputs_.push_back(own.take<float>(count, static_cast<float>(rank + 1)));
      outputs_.push_back(own.take<float>(count, -1));
      calls_.push_back(
          own.call(0, call_of(Collective::all_reduce, DataType::float32, count, inputs_.back(), outputs_.back())));
    }
  }

  DeviceCall& operator[](std::size_t k) { return calls_[k]; }
  const std::vector<DeviceCall>& calls() const { return calls_; }
  const float* output(std::size_t k) const { return outputs_[k]; }

  // Enqueues all calls in a group, or in groups of one, and waits. Returns the number of launches, or an error.
  std::string enqueue_all(bool in_group = true) {
    const std::uint32_t before = launches(own_);
    for (std::size_t k = 0; k < (in_group ? 1 : calls_.size()); ++k) {
      const Status status = enqueue(in_group ? std::span<const DeviceCall>(calls_) : std::span(&calls_[k], 1));
      if (!status.ok()) return status.message();
    }
    own_.synchronize();
    return std::to_string(launches(own_) - before);
  }

  void clear() {
    for (std::size_t k = 0; k < calls_.size(); ++k) std::fill_n(outputs_[k], calls_[k].call.count, -1.0F);
  }
  // Returns an error unless each element is the sum of the inputs of all ranks.
  std::string wrong_sum() const {
    for (std::size_t k = 0; k < calls_.size(); ++k) {
      for (std::uint64_t i = 0; i < calls_[k].call.count; ++i) {
        if (outputs_[k][i] != kRanks * (kRanks + 1) / 2.0F)
          return "element " + std::to_string(i) + " of call " + std::to_string(k) + " is " +
                 std::to_string(outputs_[k][i]);
      }
    }
    return "";
  }

 private:
  DeviceRanks& own_;
  std::vector<float*> inputs_, outputs_;
  std::vector<DeviceCall> calls_;
};

// Runs a group on each rank, and expects this number of launches. `change` alters the calls before.
void expect_launches(
    const std::vector<std::uint64_t>& counts, const std::string& expected,
    const std::function<void(Sums&)>& change = [](Sums&) {}, const CommunicatorOptions& options = {}) {
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1, options);
  islands.expect_right([&](DeviceRanks& own, Rank rank) -> std::string {
    std::string found;
    for (int turn = 0; turn < 3; ++turn) {
      Sums sums(own, rank, counts);
      change(sums);
      found += sums.enqueue_all() + " ";
    }
    return found == expected + " " + expected + " " + expected + " " ? "right" : found + "launches, not " + expected;
  });
}

// Calls of one channel and of several follow each other. The last one is not for LL.
TEST(LaunchSequences, TakeSmallCallsOfGroup) {
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1);
  islands.expect_right([&](DeviceRanks& own, Rank rank) -> std::string {
    std::string found;
    for (int turn = 0; turn < 3; ++turn) {
      Sums sums(own, rank, {2, 10'000, 1, 5000, 7, 2'000'000});
      found += sums.enqueue_all() + " ";
      found += sums.wrong_sum();
    }
    return found == "2 2 2 " ? "right" : found + "launches";
  });
}

TEST(LaunchSequences, TakeAtMostCallsOfOneBatch) { expect_launches(std::vector<std::uint64_t>(kMaxCalls + 1, 3), "2"); }

// Each rank decides for itself whether calls share a launch.
TEST(LaunchSequences, MatchSingleCallsOfPeers) {
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1);
  islands.expect_right([&](DeviceRanks& own, Rank rank) -> std::string {
    std::string found;
    for (Rank turn = 0; turn < 4; ++turn) {
      Sums sums(own, rank, {2, 10'000, 1, 5000, 7});
      found += sums.enqueue_all((turn + rank) % 2 == 0) + " ";
      found += sums.wrong_sum();
    }
    return found == (rank == 0 ? "1 5 1 5 " : "5 1 5 1 ") ? "right" : found + "launches";
  });
}

// Thread blocks do not wait for each other between calls of a launch.
TEST(LaunchSequences, EndBeforeCallThatUsesEarlierOutput) {
  expect_launches({5000, 1}, "2", [](Sums& sums) { sums[1].call.input = sums[0].call.output; });
  expect_launches({5000, 1}, "2", [](Sums& sums) { sums[1].call.output = sums[0].call.output + 4 * 4999; });
  expect_launches({5000, 1}, "2", [](Sums& sums) { sums[1].call.output = const_cast<std::byte*>(sums[0].call.input); });
  expect_launches({5000, 1}, "1", [](Sums& sums) { sums[1].call.input = sums[0].call.input; });
}

// Channel 0 of the second call reads what the last channel of the first one has written.
TEST(LaunchSequences, EndBeforeCallThatReadsResultOfOtherChannel) {
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1);
  islands.expect_right([&](DeviceRanks& own, Rank rank) -> std::string {
    std::string found;
    for (int turn = 0; turn < 3; ++turn) {
      Sums sums(own, rank, {10'000, 1});
      sums[1].call.input = sums[0].call.output + 9999 * sizeof(float);
      found += sums.enqueue_all() + " ";
      if (*sums.output(1) != 6.0F) found += "wrong ";
    }
    return found == "2 2 2 " ? "right" : found + "launches";
  });
}

// A ring keeps sums in scratch memory, which is the same in all calls. Calls without elements have no launch.
TEST(LaunchSequences, TakeNoCallsWithScratch) {
  CommunicatorOptions options;
  options.algorithm = "ring";
  options.protocol = "LL";
  expect_launches(
      {3, 3, 3}, "3", [](Sums&) {}, options);
  expect_launches({3, 0, 3}, "2");
}

TEST(LaunchSequences, AreReplayed) {
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1);
  islands.expect_right([&](DeviceRanks& own, Rank rank) -> std::string {
    Sums sums(own, rank, {2, 10'000, 7}), between(own, rank, {5000, 3});
    if (!own.rig().begin_capture(own.stream(0)).ok()) return "the capture does not begin";
    const Status captured = enqueue(sums.calls());
    const auto graph = own.rig().end_capture(own.stream(0));
    if (!captured.ok() || !graph.ok()) return "the capture fails";
    std::string wrong;
    for (int turn = 0; turn < 3; ++turn) {
      sums.clear();
      if (!graph.value()->replay(own.stream(0)).ok()) return "the graph does not run";
      (void)between.enqueue_all();
      wrong += sums.wrong_sum() + between.wrong_sum();
    }
    return wrong.empty() ? "right" : wrong;
  });
}

// Two communicators that do not fit in one launch. Processes may attach their devices in different orders, but all must
// launch the same communicator first, since launches in a stream run one after the other.
TEST(LaunchSequences, HaveOneOrderOfCommunicators) {
  const auto rig = host_rig({.thread_blocks = 8});
  CommunicatorOptions options;
  options.channels = 4;
  options.update_agreement_hash();
  Communicators of_first = std::move(Communicator::create_all(kRanks, options)).value();
  Communicators of_second = std::move(Communicator::create_all(kRanks, options)).value();
  DeviceRanks second(*rig, std::move(of_second)), first(*rig, std::move(of_first));
  ASSERT_LT(first.backend(0).peers().hosts().id(), second.backend(0).peers().hosts().id());
  constexpr std::uint64_t kElements = 200'000;
  std::vector<DeviceCall> group;
  std::vector<float*> buffers;
  for (DeviceRanks* own : {&second, &first}) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      buffers.push_back(own->take<float>(kElements, 1));
      group.push_back(own->call(
          rank, call_of(Collective::all_reduce, DataType::float32, kElements, buffers.back(), buffers.back())));
      group.back().stream = first.stream(0);
    }
  }
  const Status status = enqueue(group);
  ASSERT_TRUE(status.ok()) << status.message();
  first.synchronize();
  const std::vector<const std::byte*> launched = dynamic_cast<const HostDevice&>(rig->device()).launched();
  const auto at = [](const float* buffer) { return reinterpret_cast<const std::byte*>(buffer); };
  EXPECT_EQ(launched, (std::vector<const std::byte*>{at(buffers[kRanks]), at(buffers[0])}));
  for (const float* buffer : buffers) EXPECT_EQ(buffer[kElements - 1], kRanks);
}

// More communicators than a launch has calls.
TEST(LaunchSequences, LaunchManyCommunicatorsInParts) {
  constexpr std::size_t kCommunicators = kMaxCalls / kRanks + 1;
  const auto rig = host_rig({.thread_blocks = 64});
  std::vector<std::unique_ptr<DeviceRanks>> all;
  std::vector<DeviceCall> group;
  std::vector<float*> buffers;
  for (std::size_t i = 0; i < kCommunicators; ++i) {
    DeviceRanks& own = *all.emplace_back(std::make_unique<DeviceRanks>(*rig, kRanks));
    for (Rank rank = 0; rank < kRanks; ++rank) {
      buffers.push_back(own.take<float>(1, 1));
      group.push_back(
          own.call(rank, call_of(Collective::all_reduce, DataType::float32, 1, buffers.back(), buffers.back())));
    }
  }
  const Status status = enqueue(group);
  ASSERT_TRUE(status.ok()) << status.message();
  for (const auto& own : all) own->synchronize();
  for (const float* buffer : buffers) EXPECT_EQ(*buffer, kRanks);
  EXPECT_EQ(dynamic_cast<const HostDevice&>(rig->device()).launched().size(), 2U);
}

// A thread makes the calls of two ranks, each with a device of its own.
TEST(LaunchSequences, ServeRanksOfOneThread) {
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1);
  Sums first(islands[0], 0, {2, 10'000, 7}), second(islands[1], 1, {2, 10'000, 7});
  std::vector<DeviceCall> group;
  for (std::size_t k = 0; k < 3; ++k) {
    group.push_back(first[k]);
    group.push_back(second[k]);
  }
  ASSERT_TRUE(enqueue(group).ok());
  for (std::size_t i = 0; i < kRanks; ++i) {
    islands[i].synchronize();
    EXPECT_EQ(launches(islands[i]), 1U);
  }
  EXPECT_EQ(first.wrong_sum() + second.wrong_sum(), "");
}

TEST(LaunchSequences, TakeNoCallsOfOtherStreams) {
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1);
  islands.expect_right([&](DeviceRanks& own, Rank rank) -> std::string {
    Sums sums(own, rank, {3, 3, 3});
    DeviceStream other = own.rig().make_stream();
    sums[1].stream = other;
    const std::string found = sums.enqueue_all();
    (void)own.rig().synchronize(other);
    own.rig().destroy_stream(other);
    return found == "3" ? "right" : found + " launches";
  });
}

// The rank that is absent from the second call is named, although the first one has succeeded in the same launch.
TEST(LaunchSequences, ReportCallThatTimesOut) {
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1);
  std::mutex mutex;
  std::condition_variable timed_out;
  bool over = false;
  islands.expect_right([&](DeviceRanks& own, Rank rank) -> std::string {
    Sums sums(own, rank, {3, 5, 7});
    if (rank == 1) {
      (void)enqueue({&sums[0], 1});
      own.synchronize();
      std::unique_lock lock(mutex);
      if (!timed_out.wait_for(lock, std::chrono::minutes(1), [&] { return over; })) return "rank 0 does not time out";
      return sums.output(0)[2] == 3.0F ? "right" : "the first call is wrong";
    }
    for (const std::size_t k : {1U, 2U}) sums[k].options.timeout_ms = 300;
    (void)sums.enqueue_all();
    const std::string failure = own[0].failure().message();
    const std::lock_guard lock(mutex);
    over = true;
    timed_out.notify_all();
    if (sums.output(0)[2] != 3.0F) return "the first call is wrong";
    for (const char* part : {"all_reduce(5 float32", "rank 0 waited", "for rank 1"}) {
      if (failure.find(part) == std::string::npos) return failure;
    }
    return "right";
  });
}

}  // namespace
}  // namespace tutti::test
