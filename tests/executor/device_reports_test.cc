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

// After a failure, the peers' buffers may be in use for something else. Peers wait in the second call, so that only the
// failure stops this rank.
TEST_P(DeviceReportTest, FollowsNoAccess_WhenCallInPeersMemoryBeginsAfterFailure) {
  for (const bool peers_wait : {false, true}) {
    prepare("two_shot_mapped", 3);
    const BatchCall late = calls_->call(0);
    const std::vector<BatchCall> peers = {calls_->call(1), calls_->call(2)};
    const AddressExchange& exchange = *late.call.exchange;
    const_cast<FailedWords*>(exchange.failed)->set();
    const auto waits = [&](Rank rank) {
      const AddressRecord* const records = exchange.records[rank];  // Two for each channel.
      return load_acquire(&records[1].sequence) == 1 && load_acquire(&records[3].sequence) == 1;
    };
    if (peers_wait) {
      ASSERT_TRUE(calls_->launch(peers, b_).ok());
      ASSERT_TRUE(comes_true([&] { return waits(1) && waits(2); }));
    }
    ASSERT_TRUE(calls_->launch({late}, a_).ok());
    expect_done(a_);
    EXPECT_EQ(calls_->report(0).written, 0U) << "the failure is known";
    EXPECT_FALSE(exchange.remote_accesses->any()) << "the peers would wait for it";
    for (const std::uint32_t channel : {0U, 1U}) EXPECT_EQ(exchange.counts[channel], 0U) << "it runs the plan";
    calls_->fail();
    expect_done(b_);
  }
}

// The peer has published its addresses, so the call waits for it in the plan.
TEST_P(DeviceReportTest, AnnouncesRemoteAccess_UntilCallEnds) {
  TestCall test_call = test_call_of(1);
  test_call.operations = 1;
  calls_->prepare(of_ranks(2), "two_shot_mapped", test_call);
  const BatchCall call = calls_->call(0), peer = calls_->call(1);
  const AddressExchange& exchange = *call.call.exchange;
  give_up(peer);
  EXPECT_FALSE(peer.call.exchange->remote_accesses->any());
  ASSERT_TRUE(calls_->launch({call}, a_).ok());
  ASSERT_TRUE(comes_true([&] { return load_acquire(&exchange.counts[0]) == 1; }));
  EXPECT_TRUE(stays_false([&] { return !exchange.remote_accesses->any(); }));
  calls_->fail();
  expect_done(a_);
  EXPECT_FALSE(exchange.remote_accesses->any());
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

// A rank fails while a call begins: the call stops, or the rank sees the announcement of its access to peers. The
// announcement precedes the record of addresses, so failures come before the record, but after half of the looks that
// the record of an earlier call took.
TEST_P(DeviceReportTest, AnnouncesRemoteAccess_UnlessItSeesFailure) {
  constexpr unsigned kSeed = 20261126;
  std::mt19937 random(kSeed);
  TestCall test_call = test_call_of(1);
  test_call.operations = 1;
  std::uint32_t publishes = 0;  // Looks until the record of an earlier call was stored.
  for (int i = 0; i < 400; ++i) {
    calls_->prepare(of_ranks(2), "two_shot_mapped", test_call);
    const BatchCall call = calls_->call(0), peer = calls_->call(1);
    const AddressExchange& exchange = *call.call.exchange;
    auto* const failed = const_cast<std::uint32_t*>(exchange.failed->of(0));
    const std::uint32_t fails = publishes / 2 + random() % (publishes / 2 + 1);
    ASSERT_TRUE(calls_->launch({call}, a_).ok());
    const AddressRecord& own = exchange.records[0][1];
    if (i % 8 == 0) {
      publishes = 0;
      ASSERT_TRUE(comes_true([&] { return ++publishes, load_acquire(&own.sequence) == 1; }));
      for (std::uint32_t looks = random() % 65536; looks > 0; --looks) (void)load_acquire(failed);
    }
    for (std::uint32_t looks = 0; looks < fails && load_acquire(&own.sequence) == 0; ++looks) share_cpu();
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
