// How long multicast objects of windows exist. Calls may use them after their rank has failed or been destroyed.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "src/base/atomic.h"
#include "src/communicator/peers/deferred_frees.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/ptx/window_memory.h"

namespace tutti::test {
namespace {

// Returns the number of multicast objects of this process. The stand-in has a file for each.
std::size_t count_objects() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;  // The descriptor of the iterator itself.
    const std::string file = std::filesystem::read_symlink(entry.path(), closed).string();
    if (file.find("tutti-ptx-multicast") != std::string::npos) ++count;
  }
  return count;
}

std::string expect_objects(const char* when, std::size_t wanted) {
  const std::size_t found = count_objects();
  return found == wanted ? "right" : std::string(when) + ": " + std::to_string(found) + " multicast objects";
}

// Rank 0 is destroyed while its call has not begun. The call may access the window until it ends.
TEST(WindowObjects, OutliveRank_WhoseCallIsHeld) {
  constexpr Rank kRanks = 3;
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member);
    std::string result = "right";
    if (member.rank == 0) {
      auto* word = member.own.take<std::uint32_t>(1);
      const DeviceStream held = member.own.stream(0);
      if (!member.own.rig().device().hold_until(word, 1, held).ok()) return "not held";
      const Status status = enqueue_sum(member, window);
      if (!status.ok()) return status.message();
      member.own[0].abort();
      member.own.end(0);
      result = expect_objects("with a held call", 2 * kRanks);
      store_release(word, 1U);
      member.own.synchronize();
    }
    member.meet.arrive_and_wait();
    return result;
  };
  EXPECT_EQ(run_ranks(kRanks, "all", work), "right");
}

// Calls of peers may store at the address of an object after a failure. Ranks of a process share its memory.
TEST(WindowObjects, OutliveFailedRank_WhilePeersExist) {
  constexpr Rank kRanks = 3;
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member);
    std::string result = run_in(window, member, {.count = 1003}, {});
    member.meet.arrive_and_wait();
    if (member.rank == 0) {
      member.own[0].abort();
      member.own.end(0);
      if (result == "right") result = expect_objects("with peers", 2 * kRanks);
    }
    member.meet.arrive_and_wait();
    if (member.rank != 0) member.own.end(0);
    member.meet.arrive_and_wait();
    run_deferred_frees();
    return result == "right" ? expect_objects("without ranks", 0) : result;
  };
  EXPECT_EQ(run_ranks(kRanks, "all", work), "right");
}

TEST(WindowObjects, OutliveFailedRank_WhilePeersExistInOtherProcesses) {
  constexpr Rank kRanks = 3;
  const Gate registered, ended;
  DeviceProcessGroup processes;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    const auto rig = [=] {
      ::setenv("TUTTI_PTX_DEVICES", "3", 1);
      cudaSetDevice(static_cast<int>(rank));
      return cuda_rig();
    };
    processes.start(rig, rank, 1, kRanks, [&](DeviceRanks& own, Rank first) -> std::string {
      std::barrier<> alone(1);
      WindowMemory window({own, first, kRanks, alone});
      if (first != 0) return registered.open(1), ended.wait(), "right";
      for (Rank peer = 1; peer < kRanks; ++peer) registered.wait();  // Else the abort would end their registration.
      own[0].abort();
      own.end(0);
      run_deferred_frees();
      const std::string result = expect_objects("with a peer", 2);  // Ring and window.
      ended.open(2);
      return result;
    });
  }
  processes.expect_reports("right");
}

// To destroy an object, the driver may wait for kernels.
TEST(WindowObjects, KeepUnboundObjects_WhileCallsAreInFlight) {
  constexpr Rank kRanks = 3;
  const auto work = [](const Member& member) -> std::string {
    static std::atomic<bool> idle = false;
    const DeviceCallSource busy([] { return idle.load(); });
    member.meet.arrive_and_wait();
    WindowMemory window(member);
    if (adds(member.own)) return "switches access the window";
    member.meet.arrive_and_wait();
    std::string result = expect_objects("in flight", 2 * kRanks);
    member.meet.arrive_and_wait();
    idle = true;
    run_deferred_frees();
    member.meet.arrive_and_wait();
    if (result == "right") result = expect_objects("idle", kRanks);
    member.meet.arrive_and_wait();
    return result;
  };
  EXPECT_EQ(run_ranks(kRanks, "last_binds_once", work).substr(0, 6), "right:");  // The log follows.
}

}  // namespace
}  // namespace tutti::test
