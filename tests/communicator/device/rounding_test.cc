// Stochastic rounding and error feedback across calls on devices, in streams and in graphs. compression_test.cc covers
// single calls.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "src/base/pages.h"
#include "tests/communicator/device/part.h"

namespace tutti::test {
namespace {

constexpr Rank kRanks = 3;
constexpr std::size_t kCount = 4001;

CommunicatorOptions sending(const char* compression, const char* algorithm, RequestedRounding rounding = {}) {
  CommunicatorOptions options = over_transport();
  options.timeout_ms = 60'000;
  options.compression = compression;
  options.algorithm = algorithm;
  options.compression_rounding = rounding;
  options.update_agreement_hash();
  return options;
}

// Allocates memory of a rank until exactly `bytes` are left before it must ask the device for more.
void leave(RankDeviceMemory& rank_memory, std::size_t bytes) {
  constexpr std::size_t kChunk = 256;
  const std::size_t before = rank_memory.bytes();
  while (rank_memory.bytes() == before) ASSERT_TRUE(rank_memory.allocate(kChunk).ok());
  ASSERT_TRUE(rank_memory.allocate(rank_memory.bytes() - before - kChunk - round_up(bytes, kChunk)).ok());
}

using Floats = std::vector<float>;
struct Delivered {
  std::vector<Floats> outputs, residuals;  // [rank]
  bool operator==(const Delivered&) const = default;
};

class DeviceRounding : public OnDevices {
 protected:
  // Ranks on the device, with inputs and results of their calls.
  struct Program {
    Program(DeviceRig& rig, const CommunicatorOptions& given) : devices(rig, kRanks), options(given) {
      std::mt19937 random(11);
      std::normal_distribution<float> normal;
      for (Rank rank = 0; rank < kRanks; ++rank) {
        inputs.push_back(devices.take<float>(kCount));
        outputs.push_back(devices.take<float>(kCount));
        residuals.push_back(devices.take<float>(kCount));
        for (std::size_t i = 0; i < kCount; ++i) inputs[rank][i] = normal(random);
      }
    }

    Status enqueue(bool feeds_back, bool in_one_stream = false) {
      std::vector<DeviceCall> calls;
      add_calls(feeds_back, calls, in_one_stream);
      return tutti::enqueue(calls);
    }
    void add_calls(bool feeds_back, std::vector<DeviceCall>& calls, bool in_one_stream = false) {
      for (Rank rank = 0; rank < kRanks; ++rank) {
        Call call = call_of(Collective::all_reduce, DataType::float32, kCount, inputs[rank], outputs[rank]);
        if (feeds_back) call.residual = residuals[rank];
        calls.push_back(devices.call(rank, call));
        calls.back().options = options;
        if (in_one_stream) calls.back().stream = devices.stream(0);
      }
    }
    Delivered result() const {
      Delivered now;
      for (Rank rank = 0; rank < kRanks; ++rank) {
        now.outputs.emplace_back(outputs[rank], outputs[rank] + kCount);
        now.residuals.emplace_back(residuals[rank], residuals[rank] + kCount);
      }
      return now;
    }

    DeviceRanks devices;
    CommunicatorOptions options;
    std::vector<float*> inputs, outputs, residuals;
  };

  // Returns the results of each of `calls` consecutive calls on host memory.
  static std::vector<Delivered> on_hosts(const Program& program, int calls, bool feeds_back) {
    Communicators hosts = std::move(Communicator::create_all(kRanks, program.options)).value();
    Delivered now;
    now.outputs.assign(kRanks, Floats(kCount));
    now.residuals.assign(kRanks, Floats(kCount, 0));
    std::vector<Delivered> results;
    for (int made = 0; made < calls; ++made) {
      std::vector<Status> statuses(kRanks);
      std::vector<std::thread> threads;
      for (Rank rank = 0; rank < kRanks; ++rank) {
        threads.emplace_back([&, rank] {
          Call call = call_of(Collective::all_reduce, DataType::float32, kCount, program.inputs[rank],
                              now.outputs[rank].data());
          if (feeds_back) call.residual = now.residuals[rank].data();
          statuses[rank] = hosts[rank]->run(call, &program.options);
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
      results.push_back(now);
    }
    return results;
  }
};

// Enqueues 1, 3 and 36 calls before it synchronizes. Each call must draw its own random numbers and use the residuals
// of the previous call, as on host memory.
TEST_P(DeviceRounding, MatchesHostMemory_ForEachCall) {
  constexpr int kCalls = 40;
  Program program(*rig_, sending("int4", "two_shot", {Rounding::stochastic, 77}));
  const std::vector<Delivered> wanted = on_hosts(program, kCalls, true);
  ASSERT_NE(wanted[1].outputs, wanted[0].outputs);
  std::size_t made = 0;
  for (const int ahead : {1, 3, kCalls - 4}) {
    for (int i = 0; i < ahead; ++i, ++made) {
      const Status status = program.enqueue(true);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    program.devices.synchronize();
    ASSERT_TRUE(program.result() == wanted[made - 1]) << "call " << made;
  }
}

// A group of 8 calls per rank fails for lack of memory. It must fail before it announces any call: a later allocation
// could wait for calls of other ranks, which wait for this rank.
TEST_P(DeviceRounding, FailsGroupBeforeAnyCall_WhenOutOfMemory) {
  if (dynamic_cast<HostDevice*>(&rig_->device()) == nullptr) GTEST_SKIP() << "a GPU's memory is others', too";
  Program program(*rig_, sending("int4", "two_shot", {Rounding::stochastic, 3}));
  ASSERT_TRUE(program.enqueue(true).ok());
  program.devices.synchronize();
  for (Rank rank = 0; rank < kRanks; ++rank)
    leave(program.devices.backend(rank).peers().own_memory(), 3 * std::bit_ceil(RoundingBuffers::kBytes));
  for (std::size_t bytes = std::size_t{1} << 30; bytes > 0; bytes /= 2)
    while (rig_->device().allocate(bytes).ok()) continue;
  std::vector<DeviceCall> calls;
  for (int i = 0; i < 8; ++i) program.add_calls(true, calls);
  EXPECT_FALSE(tutti::enqueue(calls).ok());
  for (Rank rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(program.devices[rank].compression_statistics().compressed_calls, 1U) << "rank " << rank;
}

TEST_P(DeviceRounding, ReportsItsError) {
  Program program(*rig_, sending("int8", "two_shot"));
  ASSERT_TRUE(program.enqueue(false).ok());
  const double nearest = program.devices[0].last_run().error;
  program.options = sending("int8", "two_shot", {Rounding::stochastic, 1});
  ASSERT_TRUE(program.enqueue(false).ok());
  program.devices.synchronize();
  EXPECT_GT(program.devices[0].last_run().error, 1.3 * nearest);
}

// Replays a graph of one call. Each run must use the residuals of the previous run.
TEST_P(DeviceRounding, FeedsBack_InGraphs) {
  constexpr int kRuns = 4;
  Program program(*rig_, sending("int4", "two_shot"));
  const std::vector<Delivered> wanted = on_hosts(program, kRuns, true);
  ASSERT_TRUE(rig_->begin_capture(program.devices.stream(0)).ok());
  const Status status = program.enqueue(true, true);
  ASSERT_TRUE(status.ok()) << status.message();
  auto graph = rig_->end_capture(program.devices.stream(0));
  ASSERT_TRUE(graph.ok());
  for (int run = 0; run < kRuns; ++run) {
    ASSERT_TRUE(graph.value()->replay(program.devices.stream(0)).ok());
    program.devices.synchronize();
    ASSERT_TRUE(program.result() == wanted[static_cast<std::size_t>(run)]) << "run " << run;
  }
}

// Destroyed graphs must release the memory of their calls to later graphs. Memory of a graph that may run again must
// not be reused, or its second run would have a different result.
TEST_P(DeviceRounding, ReusesMemoryOfDestroyedGraphs) {
  constexpr std::size_t kGraphs = 40;
  const auto capture = [&](Program& program) {
    EXPECT_TRUE(rig_->begin_capture(program.devices.stream(0)).ok());
    EXPECT_TRUE(program.enqueue(true, true).ok());
    return std::move(rig_->end_capture(program.devices.stream(0))).value();
  };
  // Returns the result of the second run of a graph. Calls `between` before this run.
  const auto second_run = [&](const std::function<void(Program&)>& between) {
    Program program(*rig_, sending("int4", "two_shot", {Rounding::stochastic, 5}));
    const auto graph = capture(program);
    for (int run = 0; run < 2; ++run) {
      if (run == 1) between(program);
      EXPECT_TRUE(graph->replay(program.devices.stream(0)).ok());
      program.devices.synchronize();
    }
    return program.result();
  };
  const Delivered wanted = second_run([](Program&) {});
  const Delivered found = second_run([&](Program& program) {
    RankDeviceMemory& rank_memory = program.devices.backend(0).peers().own_memory();
    leave(rank_memory, kGraphs / 2 * std::bit_ceil(RoundingBuffers::kBytes));
    const std::size_t before = rank_memory.bytes();
    for (std::size_t made = 0; made < kGraphs; ++made) capture(program);
    EXPECT_EQ(rank_memory.bytes(), before);
    std::vector<std::unique_ptr<DeviceGraph>> kept;
    for (std::size_t made = 0; made < kGraphs; ++made) kept.push_back(capture(program));
    EXPECT_GT(rank_memory.bytes(), before);
  });
  EXPECT_TRUE(found == wanted);
}

// The first run of a graph must draw the same random numbers as a call without a graph, and later runs other numbers.
// Two programs must draw the same numbers. Calls without a graph run in between.
TEST_P(DeviceRounding, DrawsNewNumbers_InEachGraphRun) {
  const auto runs = [&](bool feeds_back) {
    Program program(*rig_, sending("int4", "two_shot", {Rounding::stochastic, 5}));
    std::vector<Delivered> results;
    EXPECT_TRUE(rig_->begin_capture(program.devices.stream(0)).ok());
    EXPECT_TRUE(program.enqueue(feeds_back, true).ok());
    auto graph = rig_->end_capture(program.devices.stream(0));
    EXPECT_TRUE(graph.ok());
    for (int run = 0; run < 3; ++run) {
      EXPECT_TRUE(graph.value()->replay(program.devices.stream(0)).ok());
      program.devices.synchronize();
      results.push_back(program.result());
      if (run == 0) {
        EXPECT_TRUE(results[0] == on_hosts(program, 1, feeds_back)[0]);
      }
      for (const Floats& output : results.back().outputs) EXPECT_EQ(output, results.back().outputs[0]);
      if (run == 1) {
        EXPECT_TRUE(program.enqueue(feeds_back, true).ok());
      }
    }
    return results;
  };
  for (const bool feeds_back : {false, true}) {
    const std::vector<Delivered> first = runs(feeds_back);
    EXPECT_TRUE(runs(feeds_back) == first);
    EXPECT_NE(first[1].outputs, first[0].outputs);
    EXPECT_NE(first[2].outputs, first[1].outputs);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceRounding, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
