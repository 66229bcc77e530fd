// How long multicast objects of windows exist. Calls may use them after their rank has failed or been destroyed.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "src/communicator/peers/deferred_frees.h"
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
