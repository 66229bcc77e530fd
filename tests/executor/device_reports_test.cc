// Reports of thread blocks about calls on a device that fail.
#include <random>

#include "tests/executor/device_fixture.h"

namespace tutti::test {
namespace {

class DeviceReportTest : public DeviceTest {
 protected:
  void expect_timeout(Rank peer, const KernelReport& report) {
    EXPECT_EQ(report.written, 1U);
    EXPECT_EQ(report.mismatch, 0U);
    EXPECT_EQ(report.peer, peer);
    EXPECT_EQ(report.signature, 1U);
  }

  // Expects a report of rank 0 that names `rank`, which makes a different call, while the third rank is missing.
  void expect_difference(Rank rank) {
    BatchCall other = calls_->call(rank);
    other.call.signature = {77};
    give_up(other);
    BatchCall call = calls_->call(0);
    call.watch.timeout_ns = kSoon;
    ASSERT_TRUE(calls_->launch({call}, a_).ok());
    // The report is complete as soon as it is written.
    ASSERT_TRUE(comes_true([&] { return load_acquire(&calls_->report(0).written) == 1; }));
    EXPECT_EQ(calls_->report(0).mismatch, 1U);
    EXPECT_EQ(calls_->report(0).peer, rank);
    EXPECT_EQ(calls_->report(0).signature, 1U);
    expect_done(a_);
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceReportTest, testing::ValuesIn(device_kinds()), kind_of);

TEST_P(DeviceReportTest, NamesRankThatDidNotSend) {
  prepare("one_shot", 3);
  give_up(calls_->call(1));
  give_up(calls_->call(0));
  expect_timeout(2, calls_->report(0));
  EXPECT_EQ(calls_->report(0).sends, 0U);
  EXPECT_EQ(calls_->report(2).written, 0U);
}

TEST_P(DeviceReportTest, NamesRankThatDidNotCall) {
  prepare("two_shot_mapped", 3);
  give_up(calls_->call(1));
  give_up(calls_->call(0));
  expect_timeout(2, calls_->report(0));
}

TEST_P(DeviceReportTest, NamesRankThatDidNotFreeSlots) {
  TestCall test_call = test_call_of(2);
  test_call.operations = 1;
  test_call.loop.chunks = 8;  // Twice as many as there are slots.
  test_call.granule = 1;
  calls_->prepare(of_ranks(2, Collective::broadcast), "chain", test_call);
  give_up(calls_->call(0));
  expect_timeout(1, calls_->report(0));
  EXPECT_EQ(calls_->report(0).sends, 1U);
}

// The kernel of LL messages writes reports, too.
TEST_P(DeviceReportTest, NamesRanksInCallsOfLlMessages) {
  TestCall test_call = test_call_of(2);
  test_call.operations = 1;
  test_call.protocol = Protocol::ll;
  test_call.straight = true;
  test_call.forms = Forms::one_way;
  calls_->prepare(of_ranks(3), "one_shot", test_call);
  ASSERT_EQ(calls_->call(0).call.ll, 1U);
  give_up(calls_->call(1));
  give_up(calls_->call(0));
  expect_timeout(2, calls_->report(0));
  EXPECT_EQ(calls_->report(0).sends, 0U);
  for (int i = 0; i < 20; ++i) {  // Other threads wait for a missing rank at the same time.
    calls_->prepare(of_ranks(3, Collective::all_gather), "direct", test_call);
    expect_difference(1 + static_cast<Rank>(i % 2));
  }
  test_call.loop.chunks = 8;  // Twice as many as there are slots.
  test_call.granule = 1;
  calls_->prepare(of_ranks(2, Collective::broadcast), "chain", test_call);
  ASSERT_EQ(calls_->call(0).call.ll, 1U);
  give_up(calls_->call(0));
  expect_timeout(1, calls_->report(0));
  EXPECT_EQ(calls_->report(0).sends, 1U);
}

// The peer has completed the first channel, so the report must name the second one.
TEST_P(DeviceReportTest, NamesChannelThatWaits) {
  prepare("one_shot");
  BatchCall first = calls_->call(1);
  first.channels = 1;
  give_up(first);
  give_up(calls_->call(0));
  expect_timeout(1, calls_->report(0));
  EXPECT_EQ(calls_->report(0).channel, 1U);
}

// Another thread of the block waits for a missing rank at the same time.
TEST_P(DeviceReportTest, NamesRankWithDifferentCall) {
  for (const char* algorithm : {"one_shot", "two_shot_mapped"}) {
    for (int i = 0; i < 20; ++i) {
      SCOPED_TRACE(algorithm);
      prepare(algorithm, 3);
      expect_difference(1 + static_cast<Rank>(i % 2));
    }
  }
}

TEST_P(DeviceReportTest, NamesRankWithDifferentCall_InStraightPlans) {
  TestCall test_call = test_call_of(2);
  test_call.operations = 1;
  test_call.straight = true;
  for (const Protocol protocol : {Protocol::simple, Protocol::ll}) {
    test_call.protocol = protocol;
    for (int i = 0; i < 20; ++i) {
      SCOPED_TRACE(static_cast<int>(protocol));
      calls_->prepare(of_ranks(3), "one_shot", test_call);
      expect_difference(1 + static_cast<Rank>(i % 2));
    }
  }
}

TEST_P(DeviceReportTest, IsWrittenByAllStoppedCalls) {
  prepare("two_shot", 2, 2);
  const BatchCall calls[] = {calls_->call(0, 0), calls_->call(0, 1)};
  for (const BatchCall& call : calls) ASSERT_TRUE(calls_->launch({call}, a_).ok());
  EXPECT_TRUE(stays_false([&] { return calls_->report(0).written != 0; }));
  calls_->fail();
  expect_done(a_);  // Both calls have ended, without a timeout.
  expect_timeout(1, calls_->report(0));
  EXPECT_EQ(calls_->passed(0), 2U);
}

// A call that begins after a failure stores no address record: the peer's buffers may be in use for something else.
TEST_P(DeviceReportTest, FollowsNoStore_WhenCallInPeersMemoryBeginsAfterFailure) {
  DeviceReach reach(device());
  std::pmr::vector<FailedWords> failed(1, &reach);
  failed[0].set();
  prepare("two_shot_mapped");
  BatchCall late = calls_->call(0);
  late.watch.failed = failed.data();
  give_up(late);
  EXPECT_EQ(calls_->report(0).written, 0U) << "the failure is known";
  give_up(calls_->call(1));
  expect_timeout(0, calls_->report(1));
  EXPECT_EQ(calls_->report(1).step, 0U) << "the exchange of addresses";
}

// Lanes and staging rings are no memory of programs, so a thread block looks for a failure only while it waits.
TEST_P(DeviceReportTest, FollowsWait_WhenCallOnLanesOrInRingBeginsAfterFailure) {
  TestCall staged = test_call_of(2);
  staged.loop.skew = 1;
  staged.loop.ring = 2;
  for (const auto& [algorithm, test_call] : {std::pair("one_shot", test_call_of(2)), {"two_shot_staged", staged}}) {
    calls_->prepare(of_ranks(2), algorithm, test_call);
    calls_->fail();
    BatchCall late = calls_->call(0);
    late.watch.timeout_ns = 0;
    ASSERT_TRUE(calls_->launch({late}, a_).ok());
    expect_done(a_);
    expect_timeout(1, calls_->report(0));
  }
}

// A rank fails while a call begins: the call stops, or the rank sees that the call accesses the memory of peers.
TEST_P(DeviceReportTest, AnnouncesRemoteAccess_UnlessItSeesFailure) {
  constexpr unsigned kSeed = 20261126;
  std::mt19937 random(kSeed);
  TestCall test_call = test_call_of(1);
  test_call.operations = 1;
  for (int i = 0; i < 200; ++i) {
    calls_->prepare(of_ranks(2), "two_shot_mapped", test_call);
    const BatchCall call = calls_->call(0), peer = calls_->call(1);
    const AddressExchange& exchange = *call.call.exchange;
    auto* const failed = const_cast<std::uint32_t*>(exchange.failed->of(0));
    ASSERT_TRUE(calls_->launch({call}, a_).ok());
    const AddressRecord& own = exchange.records[0][1];  // Stored at about the same time as the announcement.
    ASSERT_TRUE(comes_true([&] { return load_acquire(&own.sequence) == 1; }));
    for (std::uint32_t looks = random() % 65536; looks > 0; --looks) (void)load_acquire(failed);
    store_relaxed(failed, 1U);
    full_fence();
    const bool seen = exchange.remote_accesses->any();
    ASSERT_TRUE(calls_->launch({peer}, b_).ok());  // The call ends if it has not stopped.
    expect_done(a_);
    calls_->fail();  // The peer may wait for the call that stopped.
    expect_done(b_);
    EXPECT_TRUE(seen || exchange.counts[0] == 0) << "call " << i << ", seed " << kSeed;
  }
}

}  // namespace
}  // namespace tutti::test
