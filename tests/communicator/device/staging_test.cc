// Collectives in the staging ring, between processes and between devices of a process.
#include "tests/communicator/device/device_processes.h"
#include "tests/communicator/device/islands.h"

namespace tutti::test {
namespace {

struct Staged {
  Collective collective;
  const char* algorithm;
};
constexpr Staged kStaged[] = {
    {Collective::all_reduce, "two_shot_staged"}, {Collective::all_reduce, "switch_staged"},
    {Collective::all_gather, "direct_staged"},   {Collective::reduce_scatter, "direct_staged"},
    {Collective::broadcast, "split_staged"},     {Collective::all_to_all, "direct_staged"},
    {Collective::all_gather, "switch_staged"},   {Collective::reduce_scatter, "switch_staged"},
    {Collective::broadcast, "switch_staged"}};
constexpr DeviceDistance kNvLink = {.level = P2pLevel::nvl, .links = 18, .known = true};

// Runs all staged algorithms in `communicators`, one for each own rank, with few channels, so that chunks go round the
// ring. Calls on lanes and in the ring alternate. Returns "right" or an error.
std::string run_staged(DeviceRanks& own, Rank first, Rank ranks, const std::vector<Communicator*>& communicators) {
  std::uint32_t turn = 0;
  for (const std::uint64_t count : {600'000U, 4'001U, 1U}) {
    for (const Staged& staged : kStaged) {
      Problem problem{.collective = staged.collective, .ranks = ranks, .groups = {}};
      if (has_root(staged.collective)) problem.root = ranks - 1;
      for (const char* algorithm : {staged.algorithm, staged.algorithm, ""}) {
        const CallShape shape = {problem, staged.collective == Collective::all_reduce ? count : count / 2 + 1, ++turn};
        std::vector<Part> parts;
        std::vector<DeviceCall> calls;
        for (Rank i = 0; i < own.size(); ++i) {
          parts.emplace_back(own, first + i, shape, (turn + first + i) % 3 == 0);
          DeviceCall call = own.call(i, parts.back().call());
          call.communicator = communicators[i];
          call.options.algorithm = algorithm;
          call.options.channels = 1 + turn % 2;
          call.options.update_agreement_hash();
          calls.push_back(call);
        }
        const Status status = enqueue(calls);
        if (!status.ok()) return status.message();
        own.synchronize();
        for (const Part& part : parts) {
          if (!part.error().empty()) return part.error();
        }
        const std::string ran = communicators[0]->last_run().algorithm;
        if (*algorithm != 0 && ran != algorithm) return "ran " + ran;
      }
    }
  }
  return "right";
}

std::vector<Communicator*> members(DeviceRanks& own) {
  std::vector<Communicator*> all;
  for (Rank i = 0; i < own.size(); ++i) all.push_back(&own[i]);
  return all;
}

std::string run_own(DeviceRanks& own, Rank first, Rank ranks) { return run_staged(own, first, ranks, members(own)); }

TEST(Staging, ComputesCorrectResults_BetweenProcesses) {
  for (const Rank ranks : {2U, 3U}) {
    DeviceProcessGroup processes;
    for (Rank rank = 0; rank < ranks; ++rank)
      processes.start([=] { return host_rig({.ordinal = rank, .distance = kNvLink}); }, rank, 1, ranks,
                      [=](DeviceRanks& own, Rank first) { return run_own(own, first, ranks); });
    processes.expect_reports("right");
  }
}

TEST(Staging, ComputesCorrectResults_WithSeveralRanksPerProcess) {
  const auto rig = [] { return host_rig({}); };
  const auto work = [](DeviceRanks& own, Rank first) { return run_own(own, first, 4); };
  DeviceProcessGroup processes;
  processes.start(rig, 0, 2, 4, work);
  processes.start(rig, 2, 2, 4, work);
  processes.expect_reports("right");
}

TEST(Staging, ComputesCorrectResults_BetweenDevicesOfAProcess) {
  constexpr Rank kRanks = 3;
  Islands islands(std::vector<HostDeviceOptions>(kRanks, {.distance = kNvLink}), 1);
  islands.expect_right([](DeviceRanks& own, Rank first) { return run_own(own, first, kRanks); });
}

TEST(Staging, ComputesCorrectResults_InFurtherCommunicators) {
  constexpr Rank kRanks = 3;
  const auto work = [](DeviceRanks& own, Rank first) -> std::string {
    own.backend(0).peers().own_memory().set_large_lanes();
    auto part = own[0].split(0, 0, own[0].options());
    if (!part.ok()) return std::move(part).status().message();
    if (own.backend(0).peers().ring().channels != 48) return "the first ring is small";
    if (part.value()->on_device()->peers().ring().channels != 24) return "a further ring is large";
    return run_staged(own, first, kRanks, {part.value().get()});
  };
  DeviceProcessGroup processes;
  for (Rank rank = 0; rank < kRanks; ++rank)
    processes.start([=] { return host_rig({.ordinal = rank, .distance = kNvLink}); }, rank, 1, kRanks, work);
  processes.expect_reports("right");
}

// Returns the algorithm of an all-reduce of `bytes` between `ranks` devices.
std::string chosen(Islands& islands, std::uint64_t bytes) {
  std::string algorithm;
  islands.expect_right([&](DeviceRanks& own, Rank first) -> std::string {
    const Problem problem{.collective = Collective::all_reduce, .ranks = 3, .groups = {}};
    const Part part(own, first, {problem, bytes / sizeof(std::int64_t), 1}, false);
    const DeviceCall call = own.call(0, part.call());
    const Status status = enqueue({&call, 1});
    own.synchronize();
    if (first == 0) algorithm = own[0].last_run().algorithm;
    return !status.ok() ? status.message() : part.error().empty() ? "right" : part.error();
  });
  return algorithm;
}

TEST(Staging, IsChosen_ForMediumSizesWithNvLink) {
  Islands islands(std::vector<HostDeviceOptions>(3, {.distance = kNvLink}), 1);
  EXPECT_EQ(chosen(islands, 128 << 10), "two_shot");
  EXPECT_EQ(chosen(islands, 1 << 20), "two_shot_staged");
  EXPECT_EQ(chosen(islands, 5 << 20), "two_shot");
  Islands others(std::vector<HostDeviceOptions>(3, {.distance = {.level = P2pLevel::sys, .known = true}}), 1);
  EXPECT_EQ(chosen(others, 1 << 20), "two_shot");
}

// Ranks on one device access buffers instead.
TEST(Staging, FailsOnOneDeviceOfOneProcess) {
  const std::unique_ptr<DeviceRig> rig = host_rig({});
  DeviceRanks own(*rig, 2);
  EXPECT_NE(run_own(own, 0, 2).find(
                "'two_shot_staged' needs several GPUs of one host or NVLink domain, each pair connected by NVLink"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::test
