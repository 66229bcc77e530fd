// In whose memory teams are: only where it was shown.
#include "src/communicator/planning.h"
#include "tests/communicator/device/shown.h"

namespace tutti {
namespace {

// Who goes on knows that all have shown their memory: only then may one of them fail.
void await_all(DeviceRanks& own, const Shown& shown) {
  const Status status = all_reduce(own, shown.at(kCount), shown.at(kCount), 0);
  EXPECT_TRUE(status.ok()) << status.message();
  own.synchronize();
}

// What a rank says of its buffers as it comes to the second meeting, without coming. Said before it shows a window, for
// which ranks gather twice, and before await_all().
void say(DeviceRig& rig, DeviceRanks& own, Rank rank, const BufferPlace& place) {
  CallRecord call =
      record_of(call_of(Collective::all_reduce, DataType::int32, kCount, nullptr, nullptr), own[0].options().forced);
  call.sequence = own[0].board().last(rank) + 4;
  MeetingRecord record;
  record.meeting = 2;
  record.input = record.output = place;
  record.signature = signature_of(call).word;
  MeetingRecord* records = own[0].neighbours().records(rank).value();
  for (std::uint32_t channel = 0; channel < kMostChannels; ++channel) {
    auto* at = reinterpret_cast<std::byte*>(records + 2 * channel + record.meeting % 2);
    EXPECT_TRUE(rig.device().upload(at, std::as_bytes(std::span(&record, 1))).ok());
  }
}

// Rank 1 says that its buffers lie there, and the others take it for another call.
Work refuse(const BufferPlace& place) {
  return [place](DeviceRig& rig, DeviceRanks& own, Rank rank) -> std::string {
    if (rank == 1) say(rig, own, rank, place);
    Shown shown(rig, own);  // Window 1.
    await_all(own, shown);
    if (rank != 1) (void)all_reduce(own, shown.at(0), shown.at(0), 2000);
    while (own[0].failure().ok()) std::this_thread::yield();
    own.synchronize();
    const std::string words = own[0].failure().message();
    return unless(words.find("what rank 1 sent belongs to another call") != std::string::npos, words);
  };
}

const Work refuse_what_begins_outside = refuse({.offset = kBytes + 4, .window = 1});
const Work refuse_what_ends_outside = refuse({.offset = kBytes / 2 + 4, .window = 1});
const Work refuse_what_wraps_around = refuse({.offset = ~std::uint64_t{3}, .window = 1});
const Work refuse_bare_addresses = refuse({.offset = 0, .window = 0});
const Work refuse_what_is_not_shown = refuse({.offset = 0, .window = 2});

class VisitsOfProcesses : public CallsOfProcesses {};

TEST_P(VisitsOfProcesses, DoNotBeginOutsideOfAWindow) { expect_right(refuse_what_begins_outside); }
TEST_P(VisitsOfProcesses, DoNotEndOutsideOfAWindow) { expect_right(refuse_what_ends_outside); }
TEST_P(VisitsOfProcesses, DoNotWrapAround) { expect_right(refuse_what_wraps_around); }
TEST_P(VisitsOfProcesses, DoNotFollowBareAddresses) { expect_right(refuse_bare_addresses); }
TEST_P(VisitsOfProcesses, DoNotGoWhereNothingWasShown) { expect_right(refuse_what_is_not_shown); }

INSTANTIATE_TEST_SUITE_P(All, VisitsOfProcesses, testing::ValuesIn(shared_device_kinds()), kind_of);

class VisitsOfDevices : public CallsOfDevices {};

TEST_F(VisitsOfDevices, DoNotBeginOutsideOfAWindow) { expect_right(refuse_what_begins_outside); }
TEST_F(VisitsOfDevices, DoNotEndOutsideOfAWindow) { expect_right(refuse_what_ends_outside); }
TEST_F(VisitsOfDevices, DoNotWrapAround) { expect_right(refuse_what_wraps_around); }
TEST_F(VisitsOfDevices, DoNotFollowBareAddresses) { expect_right(refuse_bare_addresses); }

}  // namespace
}  // namespace tutti
