// Every collective between ranks on a device.
#include <random>
#include <thread>

#include "src/tuner/choose.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/device/part.h"

namespace tutti::test {
namespace {

class DeviceCollectives : public OnDevices {
 protected:
  std::vector<CallShape> shapes(Rank ranks) {
    std::vector<CallShape> all = shapes_of(ranks, random_);
    std::erase_if(all, [&](const CallShape&) { return !some_.takes(); });
    return all;
  }
  // Enqueues one call of each shape on each rank, in one group, and checks all results.
  void run_group(DeviceRanks& ranks) {
    std::vector<Part> parts;
    std::vector<DeviceCall> calls;
    for (const CallShape& shape : shapes(ranks.size())) {
      for (Rank rank = 0; rank < ranks.size(); ++rank) parts.emplace_back(ranks, rank, shape, random_() % 2 == 0);
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      calls.push_back(ranks.call(static_cast<Rank>(i % ranks.size()), parts[i].call()));
    const Status status = enqueue(calls);
    ASSERT_TRUE(status.ok()) << status.message();
    ranks.synchronize();
    for (const Part& part : parts) ASSERT_NO_FATAL_FAILURE(part.expect_right());
  }
  std::mt19937_64 random_{kSeed};
  OneOf some_{5};
};

TEST_P(DeviceCollectives, AreCorrect_InGroups) {
  for (const Rank n : {1U, 2U, 3U, 5U}) {
    DeviceRanks ranks(*rig_, n);
    ASSERT_NO_FATAL_FAILURE(run_group(ranks));
  }
}

TEST_P(DeviceCollectives, AreCorrect_WithEachProtocol) {
  for (const std::string_view protocol : kProtocols) {
    SCOPED_TRACE(protocol);
    CommunicatorOptions options;
    options.protocol = protocol;
    DeviceRanks ranks(*rig_, 3, options);
    ASSERT_NO_FATAL_FAILURE(run_group(ranks));
  }
}

TEST_P(DeviceCollectives, AreCorrect_WithOneThreadPerRank) {
  constexpr Rank kRanks = 3;
  constexpr std::uint32_t kTurns = 40;
  DeviceRanks ranks(*rig_, kRanks);
  std::vector<std::vector<Part>> parts(kRanks);
  const std::vector<CallShape> all = shapes(kRanks);
  for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
    CallShape shape = all[random_() % all.size()];
    shape.turn = turn;
    for (Rank rank = 0; rank < kRanks; ++rank) parts[rank].emplace_back(ranks, rank, shape, random_() % 2 == 0);
  }
  std::vector<std::thread> threads;
  std::vector<Status> statuses(kRanks);
  for (Rank rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (const Part& part : parts[rank]) {
        const DeviceCall call = ranks.call(rank, part.call());
        if (statuses[rank].ok()) statuses[rank] = enqueue({&call, 1});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  ranks.synchronize();
  for (const auto& own : parts) {
    for (const Part& part : own) ASSERT_NO_FATAL_FAILURE(part.expect_right());
  }
}

// Uses 320 shapes in each round, more than the cache of plans holds. Detects memory of evicted plans that is
// reused while a thread block reads it, or that is never reused.
TEST_P(DeviceCollectives, StayCorrect_WithMoreShapesThanCached) {
  constexpr Rank kRanks = 2;
  DeviceRanks ranks(*rig_, kRanks);
  for (std::uint32_t turn = 0; turn < (kSlowMotion ? 2 : 3); ++turn) {
    std::vector<Part> parts;
    for (std::uint64_t count = 1; count <= 320; ++count) {
      const Problem problem{.collective = Collective::all_gather, .ranks = kRanks, .groups = {}};
      for (Rank rank = 0; rank < kRanks; ++rank)
        parts.emplace_back(ranks, rank, CallShape{problem, count, turn}, false);
      const DeviceCall calls[] = {ranks.call(0, parts[parts.size() - 2].call()),
                                  ranks.call(1, parts[parts.size() - 1].call())};
      ASSERT_TRUE(enqueue(calls).ok());
    }
    ranks.synchronize();
    for (const Part& part : parts) ASSERT_NO_FATAL_FAILURE(part.expect_right());
  }
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_LE(ranks.backend(rank).device_bytes(), std::size_t{14} << 20);
}

TEST_P(DeviceCollectives, UseLittleMemory) {
  {
    DeviceRanks alone(*rig_, 1);
    std::vector<Part> parts;
    for (const CallShape& shape : shapes(1)) parts.emplace_back(alone, 0, shape, false);
    for (const Part& part : parts) {
      const DeviceCall call = alone.call(0, part.call());
      ASSERT_TRUE(enqueue({&call, 1}).ok());
    }
    alone.synchronize();
    EXPECT_EQ(alone.backend(0).device_bytes(), 0U);
  }
  constexpr Rank kRanks = 8;
  DeviceRanks ranks(*rig_, kRanks);
  std::vector<Part> parts;
  std::vector<DeviceCall> calls;
  for (const CallShape& shape : shapes(kRanks)) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      parts.emplace_back(ranks, rank, shape, false);
      calls.push_back(ranks.call(rank, parts.back().call()));
    }
  }
  const Status status = enqueue(calls);
  ASSERT_TRUE(status.ok()) << status.message();
  ranks.synchronize();
  for (const Part& part : parts) ASSERT_NO_FATAL_FAILURE(part.expect_right());
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_LE(ranks.backend(rank).device_bytes(), std::size_t{64} << 20);
}

TEST_P(DeviceCollectives, MultiplyBeforeSumming) {
  constexpr Rank kRanks = 3;
  DeviceRanks ranks(*rig_, kRanks);
  std::vector<float*> outputs;
  std::vector<DeviceCall> calls;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    auto* input = ranks.take<float>(5000, static_cast<float>(rank + 1));
    outputs.push_back(ranks.take<float>(5000));
    Call call = call_of(Collective::all_reduce, DataType::float32, 5000, input, outputs.back());
    call.reduction = Reduction::pre_mul_sum;
    call.scalar = rank + 2;
    calls.push_back(ranks.call(rank, call));
  }
  ASSERT_TRUE(enqueue(calls).ok());
  ranks.synchronize();
  for (const float* output : outputs) {
    for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(output[i], 1 * 2 + 2 * 3 + 3 * 4);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceCollectives, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
