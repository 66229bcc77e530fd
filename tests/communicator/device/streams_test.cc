// Order of calls in streams of a device, and replay of calls in graphs.
#include <malloc.h>

#include <string_view>

#include "tests/base/case_sampling.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kCount = 3000;

class DeviceStreams : public OnDevices {
 protected:
  // Enqueues an all-reduce of all ranks from `input` to `output`, each in its stream.
  Status sum(DeviceRanks& ranks, std::int64_t* const* input, std::int64_t* const* output, const DeviceStream* streams) {
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      DeviceCall call =
          ranks.call(rank, call_of(Collective::all_reduce, DataType::int64, kCount, input[rank], output[rank]));
      call.stream = streams[rank];
      calls.push_back(call);
    }
    return enqueue(calls);
  }
};

// Each call reads the output of the previous one, in another stream. A call that does not wait for the previous call of
// its communicator reads old data.
TEST_P(DeviceStreams, KeepOrderOfCalls_OfOneCommunicator) {
  constexpr Rank kRanks = 2;
  constexpr std::uint32_t kCalls = 12;
  DeviceRanks ranks(*rig_, kRanks);
  DeviceStream more[3] = {rig_->make_stream(), rig_->make_stream(), rig_->make_stream()};
  std::int64_t* buffers[kCalls + 1][kRanks];
  for (auto& row : buffers) {
    for (Rank rank = 0; rank < kRanks; ++rank) row[rank] = ranks.take<std::int64_t>(kCount, rank + 1);
  }
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    const DeviceStream streams[] = {i % 2 == 0 ? ranks.stream(0) : more[i % 3], more[(i + 1) % 3]};
    ASSERT_TRUE(sum(ranks, buffers[i], buffers[i + 1], streams).ok());
  }
  ranks.synchronize();
  for (DeviceStream stream : more) EXPECT_TRUE(rig_->synchronize(stream).ok());
  std::int64_t wanted = 3;
  for (std::uint32_t i = 1; i <= kCalls; ++i, wanted *= kRanks) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      for (std::uint64_t k = 0; k < kCount; ++k) ASSERT_EQ(buffers[i][rank][k], wanted) << "call " << i;
    }
  }
  for (DeviceStream stream : more) rig_->destroy_stream(stream);
}

// Copies data in the stream of each rank before and after a group of calls. Calls must wait for the first copies, and
// the last copies for the calls, in both streams, although one launch runs both calls.
TEST_P(DeviceStreams, OrderCallsWithOtherWork) {
  constexpr Rank kRanks = 2;
  DeviceRanks ranks(*rig_, kRanks);
  std::int64_t *from[kRanks], *input[kRanks], *output[kRanks], *to[kRanks];
  DeviceStream streams[kRanks];
  for (Rank rank = 0; rank < kRanks; ++rank) {
    from[rank] = ranks.take<std::int64_t>(kCount, 10 + rank);
    input[rank] = ranks.take<std::int64_t>(kCount);
    output[rank] = ranks.take<std::int64_t>(kCount);
    to[rank] = ranks.take<std::int64_t>(kCount);
    streams[rank] = ranks.stream(rank);
  }
  const auto copy = [&](std::int64_t* target, const std::int64_t* source, DeviceStream stream) {
    return rig_->device()
        .copy(reinterpret_cast<std::byte*>(target), reinterpret_cast<const std::byte*>(source), kCount * 8, stream)
        .ok();
  };
  for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(copy(input[rank], from[rank], streams[rank]));
  ASSERT_TRUE(sum(ranks, input, output, streams).ok());
  for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(copy(to[rank], output[rank], streams[rank]));
  ranks.synchronize();
  for (Rank rank = 0; rank < kRanks; ++rank) {
    for (std::uint64_t k = 0; k < kCount; ++k) ASSERT_EQ(to[rank][k], 21);
  }
}

TEST_P(DeviceStreams, ReplayGraphs_BetweenOtherCalls) {
  constexpr Rank kRanks = 2;
  DeviceRanks ranks(*rig_, kRanks);
  std::int64_t *input[kRanks], *middle[kRanks], *output[kRanks];
  for (Rank rank = 0; rank < kRanks; ++rank) {
    input[rank] = ranks.take<std::int64_t>(kCount, 1);
    middle[rank] = ranks.take<std::int64_t>(kCount);
    output[rank] = ranks.take<std::int64_t>(kCount);
  }
  const DeviceStream both[] = {ranks.stream(0), ranks.stream(0)};
  ASSERT_TRUE(sum(ranks, input, output, both).ok());  // Not captured; runs before the graph.
  ASSERT_TRUE(rig_->begin_capture(ranks.stream(0)).ok());
  ASSERT_TRUE(sum(ranks, input, middle, both).ok());
  ASSERT_TRUE(sum(ranks, middle, output, both).ok());
  auto graph = rig_->end_capture(ranks.stream(0));
  ASSERT_TRUE(graph.ok());
  ranks.synchronize();
  EXPECT_EQ(output[0][0], 2);  // Capturing the graph has not run it.
  for (std::int64_t value = 5; value < 9; ++value) {
    for (Rank rank = 0; rank < kRanks; ++rank) std::fill_n(input[rank], kCount, value + rank);
    ASSERT_TRUE(graph.value()->replay(ranks.stream(0)).ok());
    ranks.synchronize();
    for (Rank rank = 0; rank < kRanks; ++rank) {
      for (std::uint64_t k = 0; k < kCount; ++k) ASSERT_EQ(output[rank][k], 2 * (2 * value + 1));
    }
    ASSERT_TRUE(sum(ranks, input, output, both).ok());  // Not captured; runs between replays.
    ranks.synchronize();
    for (std::uint64_t k = 0; k < kCount; ++k) ASSERT_EQ(output[1][k], 2 * value + 1);
  }
}

// Where ranks share the device in time slices, each captured call has a request of 4 KiB.
TEST_P(DeviceStreams, KeepNoMemoryOfEndedGraphs) {
  if (kSlowMotion) GTEST_SKIP() << "sanitizers replace malloc(), and mallinfo2() counts nothing";
  if (std::string_view(GetParam().name) == "cuda") GTEST_SKIP() << "CUDA keeps memory of its own";
  constexpr int kGraphs = 40;
  DeviceRanks ranks(*rig_, 2);
  std::int64_t* input[] = {ranks.take<std::int64_t>(kCount, 1), ranks.take<std::int64_t>(kCount, 1)};
  std::int64_t* output[] = {ranks.take<std::int64_t>(kCount), ranks.take<std::int64_t>(kCount)};
  const DeviceStream both[] = {ranks.stream(0), ranks.stream(0)};
  std::size_t before = 0;
  for (int turn = 0; turn <= kGraphs; ++turn) {
    ASSERT_TRUE(rig_->begin_capture(ranks.stream(0)).ok());
    ASSERT_TRUE(sum(ranks, input, output, both).ok());
    auto graph = rig_->end_capture(ranks.stream(0));
    ASSERT_TRUE(graph.ok());
    ASSERT_TRUE(graph.value()->replay(ranks.stream(0)).ok());
    ranks.synchronize();
    graph.value() = nullptr;
    ASSERT_TRUE(sum(ranks, input, output, both).ok());
    ranks.synchronize();
    if (turn == 0) before = ::mallinfo2().uordblks;
  }
  EXPECT_LT(::mallinfo2().uordblks, before + kGraphs * 4096) << "two ranks have 4 KiB for each graph";
}

// Holds a call back. A replay that is enqueued after it in another stream waits for it, and a later call for the
// replay: each reads the output of the one before.
TEST_P(DeviceStreams, OrderReplaysAndOtherCalls) {
  constexpr Rank kRanks = 2;
  constexpr std::uint32_t kCalls = 5;
  DeviceRanks ranks(*rig_, kRanks);
  std::int64_t* buffers[kCalls + 1][kRanks];
  for (auto& row : buffers) {
    for (Rank rank = 0; rank < kRanks; ++rank) row[rank] = ranks.take<std::int64_t>(kCount, 1);
  }
  const DeviceStream first[] = {ranks.stream(0), ranks.stream(0)};
  const DeviceStream second[] = {ranks.stream(1), ranks.stream(1)};
  const auto capture = [&](std::uint32_t i) {
    EXPECT_TRUE(rig_->begin_capture(second[0]).ok());
    EXPECT_TRUE(sum(ranks, buffers[i], buffers[i + 1], second).ok());
    return rig_->end_capture(second[0]).value();
  };
  auto* words = ranks.take<std::uint32_t>(1);
  ASSERT_TRUE(rig_->device().hold_until(words, 1, first[0]).ok());
  ASSERT_TRUE(sum(ranks, buffers[0], buffers[1], first).ok());
  const auto graph = capture(1);
  const auto other = capture(3);
  ASSERT_TRUE(graph->replay(second[0]).ok());
  ASSERT_TRUE(sum(ranks, buffers[2], buffers[3], first).ok());
  const DeviceStream third = rig_->make_stream();
  ASSERT_TRUE(other->replay(third).ok());
  ASSERT_TRUE(sum(ranks, buffers[4], buffers[5], second).ok());
  store_release(words, 1U);
  ranks.synchronize();
  EXPECT_TRUE(rig_->synchronize(third).ok());
  std::int64_t wanted = 2;
  for (std::uint32_t i = 1; i <= kCalls; ++i, wanted *= kRanks) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      for (std::uint64_t k = 0; k < kCount; ++k) ASSERT_EQ(buffers[i][rank][k], wanted) << "call " << i;
    }
  }
  rig_->destroy_stream(third);
}

// Changes the scalars in memory between replays of a graph. Each replay must read the new values.
TEST_P(DeviceStreams, ReadScalar_WhenTheyRun) {
  constexpr Rank kRanks = 2;
  DeviceRanks ranks(*rig_, kRanks);
  auto* scalars = ranks.take<std::int64_t>(kRanks);
  std::int64_t* outputs[kRanks];
  std::vector<DeviceCall> calls;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    outputs[rank] = ranks.take<std::int64_t>(kCount);
    Call call = call_of(Collective::all_reduce, DataType::int64, kCount,
                        ranks.take<std::int64_t>(kCount, static_cast<std::int64_t>(rank) + 1), outputs[rank]);
    call.reduction = Reduction::pre_mul_sum;
    call.factor = reinterpret_cast<const std::byte*>(scalars + rank);
    calls.push_back(ranks.call(rank, call));
    calls.back().stream = ranks.stream(0);
  }
  ASSERT_TRUE(rig_->begin_capture(ranks.stream(0)).ok());
  ASSERT_TRUE(enqueue(calls).ok());
  auto graph = rig_->end_capture(ranks.stream(0));
  ASSERT_TRUE(graph.ok());
  for (const std::int64_t scalar : {3, -5}) {
    for (Rank rank = 0; rank < kRanks; ++rank) scalars[rank] = scalar * (rank + 1);
    ASSERT_TRUE(graph.value()->replay(ranks.stream(0)).ok());
    ranks.synchronize();
    for (const std::int64_t* output : outputs) {
      for (std::uint64_t k = 0; k < kCount; ++k) ASSERT_EQ(output[k], scalar + 4 * scalar);
    }
  }
}

// Captures a call, then evicts its plan from the cache by calls of 599 other shapes. The graph must keep its plan.
TEST_P(DeviceStreams, ReplayGraph_AfterManyOtherShapes) {
  constexpr Rank kRanks = 2;
  DeviceRanks ranks(*rig_, kRanks);
  std::int64_t *input[kRanks], *output[kRanks], *spare[kRanks];
  for (Rank rank = 0; rank < kRanks; ++rank) {
    input[rank] = ranks.take<std::int64_t>(kCount, 4);
    output[rank] = ranks.take<std::int64_t>(kCount);
    spare[rank] = ranks.take<std::int64_t>(kCount);
  }
  const DeviceStream both[] = {ranks.stream(0), ranks.stream(0)};
  ASSERT_TRUE(rig_->begin_capture(ranks.stream(0)).ok());
  ASSERT_TRUE(sum(ranks, input, output, both).ok());
  auto graph = rig_->end_capture(ranks.stream(0));
  ASSERT_TRUE(graph.ok());
  for (std::uint64_t count = 1; count < 600; ++count) {
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      calls.push_back(
          ranks.call(rank, call_of(Collective::all_reduce, DataType::int64, count, input[rank], spare[rank])));
      calls.back().stream = both[rank];
    }
    ASSERT_TRUE(enqueue(calls).ok());
    if (count % 100 == 0) ranks.synchronize();  // Lets memory of evicted plans be reused.
  }
  ASSERT_TRUE(graph.value()->replay(ranks.stream(0)).ok());
  ranks.synchronize();
  for (std::uint64_t k = 0; k < kCount; ++k) ASSERT_EQ(output[1][k], 8);
}

// Captures only one of two streams of a group. The group must be rejected, and the communicator must stay usable.
TEST_P(DeviceStreams, CaptureAllCallsOfGroupOrNone) {
  DeviceRanks ranks(*rig_, 2);
  std::int64_t* buffers[] = {ranks.take<std::int64_t>(kCount), ranks.take<std::int64_t>(kCount)};
  const DeviceStream streams[] = {ranks.stream(0), ranks.stream(1)};
  ASSERT_TRUE(rig_->begin_capture(streams[0]).ok());
  const Status status = sum(ranks, buffers, buffers, streams);
  EXPECT_EQ(status.code(), Code::invalid_usage);
  (void)rig_->end_capture(streams[0]);
  ASSERT_TRUE(sum(ranks, buffers, buffers, streams).ok()) << "it was a question, and the communicator is well";
  ranks.synchronize();
}

INSTANTIATE_TEST_SUITE_P(All, DeviceStreams, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
