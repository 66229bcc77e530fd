// Autotuning of calls on devices by ranks in separate processes.
#include "src/base/hash.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/communicator/device/tuned_calls.h"

namespace tutti::test {
namespace {

constexpr int kEnough = 640;
constexpr int kUnreceived = 40;  // Calls that a rank enqueues before it synchronizes.

class MultiProcessAutotuning : public DevicesOfProcesses {
 protected:
  void start(Rank rank, const DeviceProcessGroup::Work& work) {
    CommunicatorOptions options = autotuning(Tune::exact);
    options.update_agreement_hash();
    processes_.start(GetParam().make, rank, 1, 2, work, options);
  }
  DeviceProcessGroup processes_;
};

// Runs autotuned calls. Returns a hash of the choices of all calls, followed by the last choice, or an error.
std::string autotune(DeviceRanks& own, Rank rank) {
  TunedCalls calls(own, {.first = rank});
  for (int made = 0; made < kEnough; made += kUnreceived) {
    calls.enqueue_of(0, kUnreceived);
    own.synchronize();
    if (!own[0].failure().ok()) return own[0].failure().message();
    if (!calls.error().empty()) return calls.error();
  }
  std::uint32_t all = 0;
  for (const std::string& way : calls.ways(0)) all = hashed(all, way);
  if (distinct(calls.ways(0)).size() == 1) return "nothing was tried";
  return std::to_string(all) + ", at last " + calls.ways(0).back();
}

TEST_P(MultiProcessAutotuning, SwitchesAtTheSameCalls) {
  for (const Rank rank : {0U, 1U}) start(rank, autotune);
  const std::string report = processes_.report(0);
  EXPECT_NE(report.find(", at last "), std::string::npos) << report;
  EXPECT_EQ(processes_.report(1), report);
}

// Rank 0 has up to 40 calls in flight when rank 1 is killed. It must report the death instead of waiting.
TEST_P(MultiProcessAutotuning, ReportsRankDeath) {
  const Gate gate;
  start(0, [&](DeviceRanks& own, Rank rank) -> std::string {
    TunedCalls calls(own, {.first = rank});
    const auto end = own.backend(0).device().make_event().value();
    for (int i = 1; own[0].failure().ok(); ++i) {
      const DeviceCall call = calls.call(0);
      if (!enqueue({&call, 1}).ok()) break;
      if (i == 3 * kUnreceived) gate.open();
      if (i % kUnreceived != 0) continue;
      if (!end->record(own.stream(0)).ok()) return "not recorded";
      while (own[0].failure().ok() && !end->reached().value()) std::this_thread::yield();
    }
    own.synchronize();
    const std::string why = own[0].failure().message();
    return why.find("rank 1 died") == std::string::npos ? why : "reported";
  });
  start(1, [](DeviceRanks& own, Rank rank) -> std::string {
    TunedCalls calls(own, {.first = rank});
    for (;;) {
      const DeviceCall call = calls.call(0);
      if (!enqueue({&call, 1}).ok()) return "ended";
      own.synchronize();
    }
  });
  gate.wait();
  processes_.kill(1);
  EXPECT_EQ(processes_.report(0), "reported");
}

INSTANTIATE_TEST_SUITE_P(All, MultiProcessAutotuning, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
