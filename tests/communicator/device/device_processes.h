// Ranks on devices in separate processes. Each process creates its device itself, since a process that has used CUDA
// must not fork.
#pragma once

#include <thread>

#include "tests/bootstrap/shared_unique_id.h"
#include "tests/communicator/device/own_calls.h"

namespace tutti::test {

class DeviceProcessGroup {
 public:
  using MakeRig = std::function<std::unique_ptr<DeviceRig>()>;
  using Work = std::function<std::string(DeviceRanks& own, Rank first)>;

  // Runs `work` with the ranks [first, first + count) of `ranks` in a child process.
  void start(const MakeRig& make_rig, Rank first, Rank count, Rank ranks, const Work& work,
             const CommunicatorOptions& options = over_transport()) {
    processes_.start([=, this]() -> std::string {
      const auto rig = make_rig();
      Communicators members(count);
      std::vector<std::thread> threads;
      for (Rank i = 0; i < count; ++i) {
        threads.emplace_back(
            [&, i] { members[i] = std::move(Communicator::create(meeting_.id(), first + i, ranks, options)).value(); });
      }
      for (std::thread& thread : threads) thread.join();
      DeviceRanks own(*rig, std::move(members));
      return work(own, first);
    });
  }
  void kill(std::size_t index) { processes_.kill(index); }
  std::string report(std::size_t index) { return processes_.report(index); }
  void expect_reports(const std::string& wanted) {
    for (const std::string& report : processes_.reports()) EXPECT_EQ(report, wanted);
  }

 private:
  Meeting meeting_;
  Processes processes_;
};

// Fixture for tests of processes on devices. A child process checks whether the device exists, since a process that has
// used CUDA must not fork.
class DevicesOfProcesses : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    Processes probe;
    probe.start([]() -> std::string { return GetParam().make() == nullptr ? "none" : "there"; });
    if (probe.report(0) != "there") GTEST_SKIP() << "there is no such device here";
  }
};

}  // namespace tutti::test
