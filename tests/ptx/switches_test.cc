// Sums and stores by switches: ranks on devices whose rings are bound to a multicast object, and ranks that fall back.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "tests/communicator/device/device_processes.h"
#include "tests/ptx/switch_calls.h"

namespace tutti::test {
namespace {

std::string run_calls(const Member& member, std::span<const SwitchCall> calls) {
  for (const SwitchCall& call : calls) {
    const std::string result = run_switch_call(member, call, "switch_staged");
    if (result != "right") return result;
  }
  return "right";
}

TEST(Switches, AddAllTypes) {
  constexpr SwitchCall kCalls[] = {{DataType::float32, Reduction::sum, 1},
                                   {DataType::float32, Reduction::sum, 3001},
                                   {DataType::float16, Reduction::sum, 1003},
                                   {DataType::bfloat16, Reduction::sum, 1005},
                                   {DataType::float64, Reduction::sum, 1007},
                                   {DataType::bfloat16, Reduction::avg, 333},
                                   {DataType::float32, Reduction::avg, 1002},
                                   {DataType::float64, Reduction::avg, 501},
                                   // Other types and reductions use the same plan without switches.
                                   {DataType::int32, Reduction::sum, 1001},
                                   {DataType::float16, Reduction::avg, 100}};
  for (const Rank ranks : {4U, 8U}) {
    EXPECT_EQ(run_ranks(ranks, "all",
                        [&](const Member& member) -> std::string {
                          if (!has_multicast(member.own)) return "no multicast object";
                          return run_calls(member, kCalls);
                        }),
              "right");
  }
}

// Buffers at the begin of a pack and within one, of sizes that end within a pack. All types are stored to all ranks.
TEST(Switches, ServeOtherCollectives) {
  std::vector<SwitchCall> calls;
  const auto add = [&](Collective collective, DataType type, std::uint64_t count,
                       Reduction reduction = Reduction::sum) {
    for (const std::uint32_t skipped : {0U, 1U})
      calls.push_back(
          {.type = type, .reduction = reduction, .count = count, .collective = collective, .skipped = skipped});
  };
  for (const Collective collective : {Collective::all_gather, Collective::broadcast}) {
    for (const DataType type : {DataType::uint8, DataType::bfloat16, DataType::float32, DataType::float64})
      add(collective, type, 1003);
    add(collective, DataType::float32, 1);
  }
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64})
    add(Collective::reduce_scatter, type, 1003);
  add(Collective::reduce_scatter, DataType::float32, 1);
  add(Collective::reduce_scatter, DataType::float64, 501, Reduction::avg);
  add(Collective::reduce_scatter, DataType::int32, 301);  // Without switches.
  EXPECT_EQ(run_ranks(4, "all", [&](const Member& member) { return run_calls(member, calls); }), "right");
}

// Calls that NCCL_ALGO requests run elsewhere without switches, and these run with them.
TEST(Switches, StoreForNcclsVariable) {
  const auto work = [](const Member& member) -> std::string {
    for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::broadcast}) {
      const SwitchCall shape = {.count = 501, .by_nccl = true, .collective = collective};
      const std::string result = run_switch_call(member, shape, "switch_staged");
      if ((result == "right") != has_multicast(member.own)) return name(collective) + (": " + result);
    }
    return "right";
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
  EXPECT_EQ(run_ranks(3, "none", work).substr(0, 5), "right");  // The log may follow.
}

// Chunks go round the ring.
TEST(Switches, ReuseTheRing) {
  EXPECT_EQ(
      run_ranks(3, "all",
                [](const Member& member) -> std::string {
                  std::vector<SwitchCall> calls;
                  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter,
                                                      Collective::all_gather, Collective::broadcast}) {
                    calls.push_back(
                        {.type = DataType::bfloat16, .count = 1'300'001, .collective = collective, .channels = 1});
                    calls.push_back({.count = 5, .collective = collective});
                  }
                  return run_calls(member, calls);
                }),
      "right");
}

// All ranks fall back together. The log has one sentence with the rank and the error of the driver.
TEST(Switches, AreNotUsed_WhenOneRankCannotBind) {
  constexpr SwitchCall kCalls[] = {{DataType::float32, Reduction::sum, 3001}};
  const auto work = [&](const Member& member) -> std::string {
    return has_multicast(member.own) ? "has a multicast object" : run_calls(member, kCalls);
  };
  const std::string log = run_ranks(4, "last_fails", work);
  const std::string sentence =
      "right: sums do not use the switches between the GPUs, because of rank 3: cuMulticastBindMem: ";
  EXPECT_EQ(log.substr(0, sentence.size()), sentence);
  EXPECT_EQ(log.find("sums do not use", sentence.size()), std::string::npos) << log;
  EXPECT_EQ(run_ranks(4, "but_last", work), "right");
  EXPECT_EQ(run_ranks(3, "none", work), "right");
}

// NCCL_ALGO=NVLS uses the switches where they add, and the tuner's choice elsewhere.
TEST(Switches, AddForNcclsVariable_WhereTheyCan) {
  constexpr SwitchCall kFloats = {DataType::float32, Reduction::sum, 3001, true};
  constexpr SwitchCall kIntegers = {DataType::int32, Reduction::sum, 3001, true};
  const auto work = [&](const Member& member) -> std::string {
    const bool adds = has_multicast(member.own);
    const std::string floats = run_switch_call(member, kFloats, "switch_staged");
    const std::string integers = run_switch_call(member, kIntegers, "switch_staged");
    if (integers != "ran one_shot") return "integers: " + integers;
    return (floats == "right") == adds ? "right" : "floats: " + floats;
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
  EXPECT_EQ(run_ranks(3, "none", work).substr(0, 5), "right");  // The log may follow.
}

// The tuner's choice for large sums of floats, also between six ranks. Other sums keep to their algorithms. ctest runs
// this test with NCCL_NVLS_ENABLE=0, too.
TEST(Switches, AreUsedByDefault_UnlessDisabled) {
  const auto work = [&](const Member& member) -> std::string {
    if (has_multicast(member.own) != config().nvls) return "wrong multicast object";
    const std::string_view floats = config().nvls ? "switch_staged" : "two_shot_staged";
    for (const auto& [type, ran] : {std::pair{DataType::float32, floats}, {DataType::int32, "two_shot_staged"}}) {
      const std::string result = run_switch_call(member, {type, Reduction::sum, 164'000}, "");
      if (result != "right") return result;
      if (member.own[0].last_run().algorithm != ran) return "ran " + std::string(member.own[0].last_run().algorithm);
    }
    return "right";
  };
  EXPECT_EQ(run_ranks(6, "all", work), "right");
}

// 1e8 + 1 - 1e8 is 0 in the order of ranks, and 1 in another one. All ranks have the same bits in any case. ctest runs
// this test with TUTTI_DETERMINISTIC=1, too.
TEST(Switches, AddInAnyOrder_UnlessDeterministic) {
  constexpr std::uint64_t kCount = 2000;
  std::mutex mutex;
  std::vector<float> first;
  const auto work = [&](const Member& member) -> std::string {
    DeviceRanks& own = member.own;
    constexpr float kTerms[] = {1e8F, 1, -1e8F};
    auto* input = own.take<float>(kCount, kTerms[member.rank]);
    auto* output = own.take<float>(kCount, -1.0F);
    member.meet.arrive_and_wait();
    DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, kCount, input, output));
    call.options.algorithm = "switch_staged";
    call.options.update_agreement_hash();
    const Status status = enqueue({&call, 1});
    if (!status.ok()) return status.message();
    own.synchronize();
    const std::lock_guard lock(mutex);
    if (first.empty()) first.assign(output, output + kCount);
    if (!std::equal(first.begin(), first.end(), output)) return "ranks have other bits";
    const auto ones = std::count(output, output + kCount, 1.0F), zeros = std::count(output, output + kCount, 0.0F);
    if (ones + zeros != kCount) return "wrong";
    return (ones == 0) == config().deterministic ? "right" : std::to_string(ones) + " sums have another order";
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
}

TEST(Switches, AddBetweenProcesses) {
  constexpr Rank kRanks = 4;
  DeviceProcessGroup processes;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    const auto rig = [=] {
      ::setenv("TUTTI_PTX_DEVICES", "4", 1);
      cudaSetDevice(static_cast<int>(rank));
      return cuda_rig();
    };
    processes.start(rig, rank, 1, kRanks, [](DeviceRanks& own, Rank first) -> std::string {
      constexpr SwitchCall kCalls[] = {{DataType::float32, Reduction::sum, 3001},
                                       {DataType::bfloat16, Reduction::avg, 77}};
      std::barrier<> alone(1);
      return has_multicast(own) ? run_calls({own, first, kRanks, alone}, kCalls) : "no multicast object";
    });
  }
  processes.expect_reports("right");
}

}  // namespace
}  // namespace tutti::test
