// Calls on a device that fail or cannot complete.
#include <atomic>
#include <thread>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kCount = 5000;

class DeviceFailures : public OnDevices {
 protected:
  // Returns a call of a rank with a new buffer. Tests create all calls before they enqueue one, since allocation may
  // wait for the device.
  DeviceCall all_reduce(DeviceRanks& ranks, Rank rank, std::uint64_t count, std::int64_t timeout_ms = 60'000) {
    auto* buffer = ranks.take<float>(kCount, 1);
    DeviceCall call = ranks.call(rank, call_of(Collective::all_reduce, DataType::float32, count, buffer, buffer));
    call.options.timeout_ms = test_timeout_ms(*rig_, timeout_ms);
    return call;
  }
  std::vector<DeviceCall> of_all(DeviceRanks& ranks, std::uint64_t count = kCount, std::int64_t timeout_ms = 60'000) {
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < ranks.size(); ++rank) calls.push_back(all_reduce(ranks, rank, count, timeout_ms));
    return calls;
  }
  // Enqueues a call without a group.
  static Status put(const DeviceCall& call) { return enqueue({&call, 1}); }
  static void expect(const Status& status, Code code, std::initializer_list<const char*> words) {
    EXPECT_EQ(status.code(), code) << status.message();
    for (const char* word : words) EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
};

TEST_P(DeviceFailures, NameMissingRank) {
  DeviceRanks ranks(*rig_, 3);
  const auto calls = of_all(ranks, kCount, 20);
  // Rank 2 times out before rank 0 calls. Otherwise the error of rank 0 could name rank 2.
  for (const Rank rank : {2U, 0U}) {
    ASSERT_TRUE(put(calls[rank]).ok());
    ranks.synchronize();
  }
  const Status status = ranks[0].failure();
  expect(status, Code::timeout,
         {"waited too long for rank 1", "all_reduce(5000 float32, sum) #", "rank 1 has not called it"});
  // The late call fails without waiting, and with the same error.
  expect(put(calls[1]), Code::timeout, {"rank 1 has not called it"});
}

// Rank 1 does not attach its device.
TEST_P(DeviceFailures, EndAttachment_WhenAborted) {
  std::uint32_t abort = 0;
  CommunicatorOptions options = over_transport();
  options.abort = &abort;
  options.init_timeout_ms = 20'000;
  options.update_agreement_hash();
  Communicators members = std::move(Communicator::create_all(2, options)).value();
  const std::shared_ptr<Device> device(&rig_->device(), [](Device*) {});
  Status status;
  std::thread attaching([&] { status = DeviceBackend::attach({members[0].get()}, device); });
  __atomic_store_n(&abort, 1, __ATOMIC_RELEASE);
  attaching.join();
  expect(status, Code::aborted, {"rank 0 aborted the communicator"});
}

std::atomic<int>& warnings() {
  static std::atomic<int> logged;
  return logged;
}

// Rank 1 calls only after rank 0 has logged that it is late.
TEST_P(DeviceFailures, AreAnnounced_WhenRankIsLate) {
  if (over_network()) GTEST_SKIP() << "calls of other hosts are not known";
  warnings() = 0;
  set_log_sink([](std::string_view line) {
    if (line.find("rank 0 called it 100 ms ago; not called yet by rank 1") != std::string_view::npos) ++warnings();
  });
  CommunicatorOptions options;
  options.timeout_ms = 400;
  DeviceRanks ranks(*rig_, 3, options);
  const auto calls = of_all(ranks);
  for (const Rank rank : {0U, 2U}) ASSERT_TRUE(put(calls[rank]).ok());
  const Deadline deadline = Deadline::after_ms(10'000);
  while (warnings() == 0 && !deadline.passed()) ASSERT_TRUE(ranks[0].failure().ok());
  EXPECT_TRUE(ranks[0].failure().ok());
  ASSERT_TRUE(put(calls[1]).ok());
  ranks.synchronize();
  EXPECT_TRUE(ranks[0].failure().ok());
  set_log_sink(nullptr);
  EXPECT_EQ(warnings(), 1);
}

TEST_P(DeviceFailures, ReportBothCalls_WhenTheyDiffer) {
  for (const std::uint64_t count : {std::uint64_t{7}, kCount - 1}) {
    DeviceRanks ranks(*rig_, 2);
    const DeviceCall calls[] = {all_reduce(ranks, 0, kCount, 0), all_reduce(ranks, 1, count, 0)};  // 0: no deadline.
    for (const DeviceCall& call : calls) ASSERT_TRUE(put(call).ok());
    while (ranks[0].failure().ok() && ranks[1].failure().ok()) {
    }
    ranks.synchronize();
    const std::string other = "all_reduce(" + std::to_string(count) + " float32, sum)";
    for (Rank rank = 0; rank < 2; ++rank)
      expect(ranks[rank].failure(), Code::invalid_usage, {"disagree", "all_reduce(5000 float32, sum)", other.c_str()});
  }
}

TEST_P(DeviceFailures, EndAllWaits_AfterAbort) {
  DeviceRanks ranks(*rig_, 2);
  ASSERT_TRUE(put(all_reduce(ranks, 0, kCount, 0)).ok());  // 0: no deadline.
  ranks[1].abort();
  ranks.synchronize();
  expect(ranks[0].failure(), Code::aborted, {"rank 1 aborted"});
  expect(ranks[0].finalize(), Code::aborted, {"rank 1 aborted"});
}

// A call requests an invalid protocol and fails. Later calls of the communicator must succeed.
TEST_P(DeviceFailures, LeaveCommunicatorUsable_WhenCallIsInvalid) {
  DeviceRanks ranks(*rig_, 2);
  auto* buffer = ranks.take<float>(kCount, 1);
  DeviceCall call = ranks.call(0, call_of(Collective::all_reduce, DataType::float32, kCount, buffer, buffer));
  call.options.protocol = "smoke";
  call.options.update_agreement_hash();
  EXPECT_EQ(enqueue({&call, 1}).code(), Code::invalid_argument);
  for (const DeviceCall& each : of_all(ranks)) ASSERT_TRUE(put(each).ok());
  ranks.synchronize();
  EXPECT_TRUE(ranks[0].failure().ok());
}

TEST_P(DeviceFailures, RejectMisalignedBuffers) {
  DeviceRanks ranks(*rig_, 2);
  auto* buffer = ranks.take<float>(kCount, 1);
  const DeviceCall call = ranks.call(
      0, call_of(Collective::all_reduce, DataType::float32, 8, buffer, reinterpret_cast<std::byte*>(buffer) + 2));
  expect(enqueue({&call, 1}), Code::invalid_argument, {"recv is not aligned to 4 bytes"});
  EXPECT_TRUE(ranks[0].failure().ok());
}

// A watchdog thread queries failures during the first call. A single rank allocates device memory in its first call
// that is not a copy; the query must not race with that.
TEST_P(DeviceFailures, MayBeQueriedByAnotherThread_DuringFirstCall) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    DeviceRanks ranks(*rig_, 1);
    auto* buffer = ranks.take<float>(kCount, 2);
    DeviceCall call = ranks.call(0, call_of(Collective::all_reduce, DataType::float32, kCount, buffer, buffer));
    call.call.reduction = Reduction::pre_mul_sum;
    call.call.scalar = 3;
    std::atomic<bool> requested = false, done = false;
    std::thread watchdog([&] {
      while (!done) {
        EXPECT_TRUE(ranks[0].failure().ok());
        requested = true;
      }
    });
    while (!requested) std::this_thread::yield();
    EXPECT_TRUE(enqueue({&call, 1}).ok());
    ranks.synchronize();
    done = true;
    watchdog.join();
    EXPECT_EQ(buffer[kCount - 1], 6);
  }
}

// Destroys a communicator after a timeout. A new communicator on the device must work.
TEST_P(DeviceFailures, LeaveNothingBehind) {
  {
    DeviceRanks ranks(*rig_, 2);
    ASSERT_TRUE(put(all_reduce(ranks, 0, kCount, 1)).ok());
    ranks.synchronize();
  }
  DeviceRanks again(*rig_, 2);
  for (const DeviceCall& each : of_all(again)) ASSERT_TRUE(put(each).ok());
  again.synchronize();
  EXPECT_TRUE(again[1].failure().ok());
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFailures, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
