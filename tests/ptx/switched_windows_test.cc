// Windows that switches access: ranks on devices whose registered memory is bound to a multicast object, and ranks that
// fall back.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "src/base/log.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/ptx/window_memory.h"

namespace tutti::test {
namespace {

// Places of a call in place.
Places in_place(const SwitchCall& shape, const Member& member, std::size_t begin) {
  const std::size_t block = shape.count * size_of(shape.type) * member.rank;
  if (shape.collective == Collective::all_gather) return {begin + block, begin};
  if (shape.collective == Collective::reduce_scatter) return {begin, begin + block};
  return {begin, begin};
}

// Begins of buffers within a pack, in place and not, with sizes that end within a pack, on one and several channels.
TEST(SwitchedWindows, ServeAllTypesAndPlaces) {
  std::vector<SwitchCall> calls;
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64})
      calls.push_back({.type = type, .count = 1003, .collective = collective, .channels = 2});
    calls.push_back({.count = 1, .collective = collective});
    calls.push_back({.count = 4096, .collective = collective});
    // Without switches, except in an all-gather.
    calls.push_back({.type = DataType::uint8, .count = 1001, .collective = collective});
  }
  calls.push_back({.type = DataType::bfloat16, .reduction = Reduction::avg, .count = 333});
  calls.push_back({.type = DataType::float64, .reduction = Reduction::avg, .count = 333});
  for (const Rank ranks : {4U, 8U}) {
    const std::string report = run_ranks(ranks, "all", [&](const Member& member) -> std::string {
      WindowMemory window(member);
      if (!adds(member.own)) return "switches do not access the window";
      for (const SwitchCall& call : calls) {
        const std::size_t size = size_of(call.type);
        for (const Places& places : {Places{}, Places{size, kOutputAt + size}, Places{3 * size, kOutputAt + size},
                                     in_place(call, member, 0), in_place(call, member, 5 * size)}) {
          const std::string result = run_in(window, member, call, places);
          if (result != "right") return result;
        }
        if (ranks > 4 && &call - calls.data() > 3) break;
      }
      return window.withdraw();
    });
    EXPECT_EQ(report, "right");
  }
}

// Ranks whose buffers are at other places of the window, or in other windows, access each other's memory instead.
TEST(SwitchedWindows, ServeOtherPlacesOfOneRank_WithoutSwitches) {
  const auto work = [](const Member& member) -> std::string {
    WindowMemory first(member), second(member);
    const SwitchCall shape = {.count = 1003, .channels = 2};
    const bool other = member.rank == 1;
    for (const Places& places : {Places{other ? 64U : 0, kOutputAt}, Places{0, kOutputAt + (other ? 4U : 0)}}) {
      const std::string result = run_in(first, member, shape, places);
      if (result != "right") return result;
    }
    return run_in(other ? second : first, member, shape, {});
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
}

// One window that switches cannot access is enough that no call uses them: ranks may pass buffers in different windows.
TEST(SwitchedWindows, AreNotUsed_WhileOneWindowHasNoMulticastObject) {
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member);
    if (!adds(member.own)) return "switches do not access the window";
    {
      // At another place of an allocation of the same size.
      const std::size_t begin = member.rank == 1 ? 256 : 0;
      WindowMemory other(member, begin, kWindowBytes - begin);
      if (adds(member.own)) return "buffers at different places are bound";
      for (const WindowMemory* each : {&window, &other}) {
        const std::string result = run_in(*each, member, {.count = 1003}, {});
        if (result != "right") return result;
      }
      const std::string withdrawn = other.withdraw();
      if (withdrawn != "right") return withdrawn;
    }
    if (!adds(member.own)) return "the other window still counts";
    return run_in(window, member, {.count = 1003}, {});
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
}

TEST(SwitchedWindows, AreNotUsed_WhenOneRankCannotBind) {
  const auto work = [](const Member& member) -> std::string {
    if (member.own.backend(0).peers().multicast_ring() == nullptr) return "the staging rings are not bound";
    WindowMemory window(member);
    if (adds(member.own)) return "switches access the window";
    const std::string result = run_in(window, member, {.count = 1003}, {});
    return result == "right" ? window.withdraw() : result;
  };
  const std::string log = run_ranks(4, "last_binds_once", work);
  const std::string sentence =
      "right: sums in a window do not use the switches between the GPUs, because of rank 3: cuMulticastBindMem: ";
  EXPECT_EQ(log.substr(0, sentence.size()), sentence);
  EXPECT_EQ(log.find("do not use", sentence.size()), std::string::npos) << log;
}

// 1e8 + 1 - 1e8 is 0 in the order of ranks, and 1 in another one, which shows that the switches add.
TEST(SwitchedWindows, AddInAnyOrder) {
  constexpr std::uint64_t kCount = 2000;
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member);
    constexpr float kTerms[] = {1e8F, 1, -1e8F};
    const std::vector<float> input(kCount, kTerms[member.rank]);
    const auto bytes = std::as_bytes(std::span(input));
    window.write({bytes.begin(), bytes.end()}, 0);
    member.meet.arrive_and_wait();
    DeviceCall call =
        member.own.call(0, call_of(Collective::all_reduce, DataType::float32, kCount, window.at(0), window.at(0)));
    call.options.algorithm = "switch_mapped";
    call.options.update_agreement_hash();
    const Status status = enqueue({&call, 1});
    if (!status.ok()) return status.message();
    member.own.synchronize();
    const std::vector<std::byte> result = window.read(0, bytes.size());
    const auto* sums = reinterpret_cast<const float*>(result.data());
    const auto ones = std::count(sums, sums + kCount, 1.0F), zeros = std::count(sums, sums + kCount, 0.0F);
    if (ones + zeros != kCount) return "wrong";
    return ones > 0 ? "right" : "the order of ranks";
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
}

// The tuner's choice for large sums of floats. ctest runs this test with NCCL_NVLS_ENABLE=0, too.
TEST(SwitchedWindows, AreUsedByDefault_UnlessDisabled) {
  constexpr std::uint64_t kCount = (4 << 20) / sizeof(float) + 2;
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member, 0, 8 << 20);
    if (adds(member.own) != config().nvls) return "wrong multicast object";
    const std::string_view floats = config().nvls ? "switch_mapped" : "two_shot_mapped";
    for (const auto& [type, ran] : {std::pair{DataType::float32, floats}, {DataType::int32, "two_shot_mapped"}}) {
      const std::string result = run_in(window, member, {.type = type, .count = kCount}, {0, 0}, "");
      if (result != "right") return result;
      if (member.own[0].last_run().algorithm != ran) return "ran " + std::string(member.own[0].last_run().algorithm);
    }
    return window.withdraw();
  };
  EXPECT_EQ(run_ranks(4, "all", work), "right");
}

// NCCL_ALGO=NVLS, which means switch_staged elsewhere. Our name always means switch_staged.
TEST(SwitchedWindows, ServeNcclsVariable_InLargeBuffers) {
  constexpr std::uint64_t kLarge = (4 << 20) / sizeof(float) + 2;
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member, 0, 8 << 20);
    const std::string small = run_in(window, member, {.count = 1003, .by_nccl = true}, {}, "switch_staged");
    if (small != "right") return "small: " + small;
    const std::string ours = run_in(window, member, {.count = kLarge}, {0, 0}, "switch_staged");
    if (ours != "right") return "by our name: " + ours;
    const std::string large = run_in(window, member, {.count = kLarge, .by_nccl = true}, {0, 0}, "switch_staged");
    return large == "ran switch_mapped" ? window.withdraw() : "large: " + large;
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
}

// Rank 1 does not call. The others wait until it aborts, and then free their windows.
TEST(SwitchedWindows, EndCalls_WhenARankAborts) {
  std::atomic<int> called = 0;
  const auto work = [&](const Member& member) -> std::string {
    WindowMemory window(member);
    member.meet.arrive_and_wait();
    if (member.rank != 1) {
      const Status status = enqueue_sum(member, window);
      if (!status.ok()) return status.message();
      ++called;
    }
    while (called < 2) std::this_thread::yield();
    if (member.rank == 1) member.own[0].abort();
    member.own.synchronize();
    (void)window.withdraw();
    const std::string words = member.own[0].failure().message();
    return words.find("rank 1 aborted") != std::string::npos || member.rank == 1 ? "right" : "failure: " + words;
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
}

// The first window that switches access changes nothing for calls outside of windows.
TEST(SwitchedWindows, KeepOtherCallsPrepared) {
  const auto work = [](const Member& member) -> std::string {
    static std::atomic<std::uint32_t> prepared = 0;
    set_log_level(LogLevel::trace);
    set_log_sink([](std::string_view line) { prepared += line.find("new call") != std::string_view::npos ? 1 : 0; });
    const auto* input = member.own.take<float>(10, 1);
    auto* output = member.own.take<float>(10);
    member.meet.arrive_and_wait();
    const auto run = [&] {
      const DeviceCall call = member.own.call(0, call_of(Collective::all_reduce, DataType::float32, 10, input, output));
      EXPECT_TRUE(enqueue({&call, 1}).ok());
      member.own.synchronize();
      member.meet.arrive_and_wait();
    };
    run();
    if (prepared < member.ranks) return "the log does not show new calls";
    WindowMemory window(member);  // Its exchanges are new calls, too.
    if (!adds(member.own)) return "switches do not access the window";
    member.meet.arrive_and_wait();
    const std::uint32_t before = prepared;
    member.meet.arrive_and_wait();
    run();
    return prepared == before ? "right" : "prepared again";
  };
  EXPECT_EQ(run_ranks(3, "all", work), "right");
}

TEST(SwitchedWindows, AddBetweenProcesses) {
  constexpr Rank kRanks = 4;
  DeviceProcessGroup processes;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    const auto rig = [=] {
      ::setenv("TUTTI_PTX_DEVICES", "4", 1);
      cudaSetDevice(static_cast<int>(rank));
      return cuda_rig();
    };
    processes.start(rig, rank, 1, kRanks, [](DeviceRanks& own, Rank first) -> std::string {
      std::barrier<> alone(1);
      const Member member = {own, first, kRanks, alone};
      WindowMemory window(member, 4096);
      if (!adds(own)) return "switches do not access the window";
      for (const SwitchCall& call : {SwitchCall{.count = 3001}, SwitchCall{.type = DataType::bfloat16, .count = 77}}) {
        for (const Places& places : {Places{}, Places{8, 8}}) {
          const std::string result = run_in(window, member, call, places);
          if (result != "right") return result;
        }
      }
      return window.withdraw();
    });
  }
  processes.expect_reports("right");
}

}  // namespace
}  // namespace tutti::test
