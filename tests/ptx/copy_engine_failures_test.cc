// Calls by copy engines that fail, and calls that request them in vain.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <span>

#include "src/base/atomic.h"
#include "src/base/log.h"
#include "tests/ptx/copy_engine_calls.h"

namespace tutti::test {
namespace {

// Rank 1 calls with its input, or its output in place, at another place of a window that ends before those of its
// peers.
std::string call_elsewhere(const Member& member, bool in_place) {
  const bool other = member.rank == 1;
  WindowMemory window(member, 0, other ? kWindowBytes : 4 * kWindowBytes);
  const std::size_t output = other ? 0 : in_place ? 3 * kWindowBytes : 0;
  const std::size_t input = in_place ? output + member.rank * kBlockBytes : other ? 8 * kBlockBytes : 3 * kWindowBytes;
  member.meet.arrive_and_wait();
  const DeviceCall call = requested(member, gather_call(window, input, output));
  (void)enqueue({&call, 1});
  member.own.synchronize();
  member.meet.arrive_and_wait();
  const std::string words = member.own[0].failure().message();
  const bool named =
      words.find("rank 1 passes byte " + std::to_string(in_place ? 0 : 8 * kBlockBytes)) != std::string::npos;
  return named && words.find("copy engines") != std::string::npos ? "right" : words;
}

TEST(CopyEngineFailures, RejectBuffersAtOtherPlaces) {
  for (const bool in_place : {false, true})
    EXPECT_EQ(run_members(3, [=](const Member& member) { return call_elsewhere(member, in_place); }), "right");
}

// Rank 1 passes an output outside of its window.
TEST(CopyEngineFailures, RejectBuffersThatOneRankHasOutsideOfWindows) {
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member);
    auto* outside = member.own.take<std::uint8_t>(member.ranks * kBlockBytes);
    member.meet.arrive_and_wait();
    Call call = gather_call(window, 0, kOutputAt);
    if (member.rank == 1) call.output = reinterpret_cast<std::byte*>(outside);
    const DeviceCall made = requested(member, call);
    (void)enqueue({&made, 1});
    member.own.synchronize();
    member.meet.arrive_and_wait();
    const std::string words = member.own[0].failure().message();
    const bool named = words.find("rank 1 does not pass buffers in windows that copy engines") != std::string::npos;
    return named ? "right" : words;
  };
  EXPECT_EQ(run_members(2, work), "right");
}

TEST(CopyEngineFailures, TimeOut_WhenARankIsAbsent) {
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member);
    member.meet.arrive_and_wait();
    const DeviceCall call = requested(member, gather_call(window), 50);
    if (member.rank != 1) (void)enqueue({&call, 1});
    member.own.synchronize();
    if (member.rank != 1) (void)member.own[0].failure();  // Publishes the report of the thread block.
    member.meet.arrive_and_wait();
    const std::string words = member.own[0].failure().message();
    return words.find("waited too long for rank 1 in all_gather") != std::string::npos ? "right" : words;
  };
  EXPECT_EQ(run_members(2, work), "right");
}

TEST(CopyEngineFailures, End_WhenARankAborts) {
  std::atomic<int> called = 0;
  const auto work = [&](const Member& member) -> std::string {
    WindowMemory window(member);
    member.meet.arrive_and_wait();
    const DeviceCall call = requested(member, gather_call(window), 0);
    if (member.rank != 1) {
      const Status status = enqueue({&call, 1});
      if (!status.ok()) return status.message();
      ++called;
    }
    while (called < 2) std::this_thread::yield();
    if (member.rank == 1) member.own[0].abort();
    member.own.synchronize();
    const std::string words = member.own[0].failure().message();
    return words.find("rank 1 aborted") != std::string::npos || member.rank == 1 ? "right" : words;
  };
  EXPECT_EQ(run_members(3, work), "right");
}

// The call of rank 0 begins after a failure, when its peers have ended and freed their windows. It must neither read
// freed memory nor wait.
TEST(CopyEngineFailures, BeginAfterAFailure_WhenPeersHaveFreedTheirWindows) {
  const auto work = [](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    std::optional<WindowMemory> window(member);
    auto* word = own.take<std::uint32_t>(1);
    meet.arrive_and_wait();
    if (rank == 0) {
      if (!own.rig().device().hold_until(word, 1, own.stream(0)).ok()) return "not held";
      const DeviceCall call = requested(member, gather_call(*window), 0);
      const Status status = enqueue({&call, 1});
      if (!status.ok()) return status.message();
    }
    meet.arrive_and_wait();
    if (rank != 0) {
      own[0].abort();
      own.end(0);
      window.reset();
    }
    meet.arrive_and_wait();
    store_release(word, 1U);
    own.synchronize();
    return rank != 0 || !own[0].failure().ok() ? "right" : "no failure";
  };
  EXPECT_EQ(run_members(3, work), "right");
}

// The rank is destroyed while its call has not begun, which reads from the rank's mappings until it ends.
TEST(CopyEngineFailures, ReadWindows_WhenTheirRankIsDestroyed) {
  const auto work = [](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    WindowMemory window(member);
    auto* word = own.take<std::uint32_t>(1);
    meet.arrive_and_wait();
    if (rank == 0) {
      if (!own.rig().device().hold_until(word, 1, own.stream(0)).ok()) return "not held";
      const DeviceCall call = requested(member, gather_call(window), 0);
      const Status status = enqueue({&call, 1});
      if (!status.ok()) return status.message();
      own[0].abort();
      own.end(0);
      store_release(word, 1U);
      own.synchronize();
    }
    meet.arrive_and_wait();
    return "right";
  };
  EXPECT_EQ(run_members(3, work), "right");
}

// ---- Calls that cannot use them ----

std::atomic<const char*> reason = "";
std::atomic<Rank> reasons = 0;

// From now on counts the lines of the log that contain the words.
void count_reasons(const char* words) {
  reason = words;
  set_log_level(LogLevel::info);
  set_log_sink([](std::string_view line) { reasons += line.find(reason.load()) != line.npos ? 1 : 0; });
}

// Each rank logs the reason once.
std::string run_by_kernels(const WindowMemory& window, const Member& member, const char* why) {
  const SwitchCall shape = {.count = 1003, .collective = Collective::all_gather};
  count_reasons(why);
  const std::string result = run_in(window, member, shape, {}, kRequest);
  if (result == "right") return "used copy engines";
  member.meet.arrive_and_wait();
  if (reasons != member.ranks) return std::to_string(reasons) + " reasons";
  return result.starts_with("ran ") ? "right" : result;
}

TEST(CopyEngineFailures, AreNotUsed_WhereMemoryHasNoFile) {
  ::setenv("TUTTI_PTX_FILES", "refused", 1);
  const auto work = [](const Member& member) {
    WindowMemory window(member);
    return run_by_kernels(window, member, "engines: some window is not in memory of");
  };
  EXPECT_EQ(run_members(2, work), "right");
  ::unsetenv("TUTTI_PTX_FILES");
}

// One window of plain memory is enough: ranks may pass buffers in different windows.
TEST(CopyEngineFailures, AreNotUsed_WhileOneWindowHasNoFile) {
  const auto work = [](const Member& member) -> std::string {
    WindowMemory window(member);
    const SwitchCall shape = {.count = 1003, .collective = Collective::all_gather};
    DeviceBackend& backend = member.own.backend(0);
    std::byte* plain = member.own.rig().device().allocate(kWindowBytes).value();
    std::string result = run_in(window, member, shape, {}, kRequest);
    if (result != "right") return result;
    const WindowHandle other = backend.register_window({plain, kWindowBytes, WindowGuarantee::symmetric}).value();
    if (other == 0) return "no window";
    result = run_by_kernels(window, member, "engines: some window is not in memory of");
    if (result != "right") return result;
    member.meet.arrive_and_wait();
    if (!backend.deregister_window(other).ok()) return "still a window";
    result = run_in(window, member, shape, {}, kRequest);
    return result == "right" ? window.withdraw() : result;
  };
  EXPECT_EQ(run_members(2, work), "right");
}

// Calls of the communicator would map no memory of ranks of their process.
TEST(CopyEngineFailures, AreNotUsed_WhenOnlyCallsOfThreadsRequestThem) {
  const auto work = [](const Member& member) {
    WindowMemory window(member);
    return run_by_kernels(
        window, member,
        "engines: ranks share a process: request them in the options of the communicator, not of calls");
  };
  EXPECT_EQ(run_ranks(2, "none", work), "right");
}

// Copies would return the exact input, which int8 cannot represent.
TEST(CopyEngineFailures, AreNotUsed_ForCompressedMessages) {
  const auto work = [](const Member& member) -> std::string {
    constexpr std::uint64_t kCount = 1024;
    WindowMemory window(member);
    std::vector<float> input(kCount, 1.0F / 3);
    input[0] = 1000;
    const auto bytes = std::as_bytes(std::span(input));
    window.write({bytes.begin(), bytes.end()}, 0);
    member.meet.arrive_and_wait();
    DeviceCall call = requested(
        member, call_of(Collective::all_gather, DataType::float32, kCount, window.at(0), window.at(kOutputAt)));
    call.options.compression = "int8";
    call.options.update_agreement_hash();
    const Status status = enqueue({&call, 1});
    if (!status.ok()) return status.message();
    member.own.synchronize();
    const bool exact = window.read(kOutputAt, bytes.size()) == std::vector<std::byte>(bytes.begin(), bytes.end());
    const std::string ran = member.own[0].last_run().algorithm;
    return ran == kRequest || (exact && member.rank != 0) ? "ran " + ran : window.withdraw();
  };
  EXPECT_EQ(run_members(2, work), "right");
}

TEST(CopyEngineFailures, AreNotUsed_OutsideOfWindows) {
  const auto work = [](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    count_reasons("engines: its buffers are not in");
    WindowMemory window(member);
    const auto* input = own.take<std::uint8_t>(kBlockBytes, static_cast<std::uint8_t>(rank));
    auto* output = own.take<std::uint8_t>(ranks * kBlockBytes);
    meet.arrive_and_wait();
    for (std::uint64_t count = kBlockBytes; count > kBlockBytes - 3; --count) {
      const DeviceCall call = requested(member, call_of(Collective::all_gather, DataType::uint8, count, input, output));
      const Status status = enqueue({&call, 1});
      if (!status.ok()) return status.message();
    }
    own.synchronize();
    meet.arrive_and_wait();
    if (reasons != 2) return std::to_string(reasons) + " reasons";
    const std::string ran = own[0].last_run().algorithm;
    return ran != kRequest && output[kBlockBytes] == 1 ? window.withdraw() : "ran " + ran;
  };
  EXPECT_EQ(run_members(2, work), "right");
}

}  // namespace
}  // namespace tutti::test
