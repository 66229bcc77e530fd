// Remote access by thread blocks: only to registered memory, and not after a failure.
#include <atomic>
#include <thread>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/communicator/operation.h"
#include "src/communicator/planning/planning.h"
#include "tests/communicator/device/shown.h"

namespace tutti::test {
namespace {

// Returns when all ranks have registered their memory: only then may a rank fail.
void await_all(DeviceRanks& own, const Shown& shown) {
  const Status status = all_reduce(own, shown.at(kCount), shown.at(kCount), 0);
  EXPECT_TRUE(status.ok()) << status.message();
  own.synchronize();
}

// Announces a rank's buffers for the second meeting without making the call. Called before a window is registered, for
// which ranks gather twice, and before await_all().
void say(DeviceRig& rig, DeviceRanks& own, Rank rank, const BufferPlace& place) {
  CallRecord call =
      record_of(call_of(Collective::all_reduce, DataType::int32, kCount, nullptr, nullptr), own[0].options());
  call.sequence = own[0].board().last(rank) + 4;
  MeetingRecord record;
  record.meeting = 2;
  record.input = record.output = place;
  record.signature = signature_of(call).word;
  MeetingRecord* records = own[0].peers().records(rank).value();
  for (std::uint32_t channel = 0; channel < kMaxChannels; ++channel) {
    auto* at = reinterpret_cast<std::byte*>(records + 2 * channel + record.meeting % 2);
    EXPECT_TRUE(rig.device().upload(at, std::as_bytes(std::span(&record, 1))).ok());
  }
}

// Rank 1 announces these buffers, and the others treat it as a different call.
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

const Work reject_begin_outside = refuse({.offset = kBytes + 4, .window = 1});
const Work reject_end_outside = refuse({.offset = kBytes / 2 + 4, .window = 1});
const Work reject_wrap_around = refuse({.offset = ~std::uint64_t{3}, .window = 1});
const Work reject_bare_addresses = refuse({.offset = 0, .window = 0});
const Work reject_unregistered = refuse({.offset = 0, .window = 2});

bool in_remote_access(DeviceRanks& own, Rank rank) {
  const auto& words = own[0].board().entry(rank).block_accesses;
  return std::any_of(std::begin(words), std::end(words),
                     [](const std::uint32_t& word) { return load_acquire(&word) != 0; });
}

// Counter of rank 1 for a channel that no call has.
std::uint32_t& odd_access(DeviceRanks& own) { return own[0].board().entry(1).block_accesses[kMaxRemoteAccesses - 1]; }

// Rank 1 accesses the others. Returns after rank 0 has seen this and failed the communicator.
void abort_during_remote_access(DeviceRanks& own, Rank rank) {
  if (rank == 1) store_release(&odd_access(own), 1U);
  while (rank == 0 && load_acquire(&odd_access(own)) == 0) std::this_thread::yield();
  if (rank == 0) own[0].abort();
  while (own[0].failure().ok()) std::this_thread::yield();
}

// Whether a rank has begun to wait for remote accesses. A separate function, since gcc 12 otherwise takes the board for
// a null pointer.
[[gnu::noinline]] bool is_waiting_for_remote_access(DeviceRanks& own) {
  const auto* header = reinterpret_cast<const BoardHeader*>(own[0].board().segment().data());
  return load_acquire(&header->remote_access_deadline_ns) != 0;
}

// Ends rank 1's access after another rank has waited for it, or after a timeout.
void leave_after_remote_access(DeviceRanks& own) {
  const Deadline longest = Deadline::after_ms(20 * kRemoteAccessMs);  // Ranks wait at their ends, if not before.
  while (!is_waiting_for_remote_access(own) && !longest.passed()) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) std::this_thread::yield();
  store_release(&odd_access(own), 0U);
}

// Rank 1's thread block stays in the memory of all ranks after the failure, until another rank waits for it. A rank
// that does not wait finds it there.
std::string wait_for_remote_access_during(DeviceRig& rig, DeviceRanks& own, Rank rank,
                                          void (*wait)(DeviceCommunicator&)) {
  const Shown shown(rig, own);
  const Deadline latest =
      Deadline::after_ms(kRemoteAccessMs);  // No rank has failed yet, and none fails before all are here.
  await_all(own, shown);
  abort_during_remote_access(own, rank);
  if (rank == 1) {
    leave_after_remote_access(own);
    return "";
  }
  wait(own[0]);
  return unless(load_acquire(&odd_access(own)) == 0 || latest.passed(), "did not wait");
}

std::string synchronize_during_remote_access(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  return wait_for_remote_access_during(rig, own, rank, [](DeviceCommunicator& ours) { (void)ours.await_own_calls(); });
}

std::string shrink_during_remote_access(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  return wait_for_remote_access_during(rig, own, rank, [](DeviceCommunicator& ours) {
    const auto part = ours.shrink({1}, ours.options());
    EXPECT_TRUE(part.ok());
  });
}

// tutti_comm_destroy() accesses the board through another descriptor.
std::string destroy_during_remote_access(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  std::byte* memory = rig.device().allocate(kBytes).value();
  const Status met = all_reduce(own, memory, memory, 0);
  EXPECT_TRUE(met.ok()) << met.message();
  own.synchronize();
  const Deadline latest = Deadline::after_ms(kRemoteAccessMs);
  File file = own[0].board().segment().duplicate().value();
  const Segment board = Segment::adopt(std::move(file), own[0].board().segment().size()).value();
  const std::ptrdiff_t place = reinterpret_cast<std::byte*>(&odd_access(own)) - own[0].board().segment().data();
  abort_during_remote_access(own, rank);
  if (rank == 1) {
    leave_after_remote_access(own);
  } else {
    own.end(0);
  }
  const auto* visit = reinterpret_cast<const std::uint32_t*>(board.data() + place);
  const bool waited = load_acquire(visit) == 0 || latest.passed();
  rig.device().free(memory);
  return unless(waited, "did not wait");
}

// The rank's own call is blocked in its stream until the rank waits for it, and must not run afterwards.
std::string wait_for_the_own_call(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  const Shown shown(rig, own);
  await_all(own, shown);
  auto* word = own.take<std::uint32_t>(1, 0);
  (void)rig.device().hold_until(word, 1, own.stream(0));
  const bool enqueued =
      all_reduce(own, shown.at(0), shown.at(0), 0).ok();  // Rank 0 may already have failed the communicator.
  if (rank == 0) own[0].abort();
  while (own[0].failure().ok()) std::this_thread::yield();
  std::atomic<bool> opened = false;
  std::thread opener([&] {
    while (!is_waiting_for_remote_access(own)) std::this_thread::yield();
    for (int i = 0; i < 10; ++i) std::this_thread::yield();
    opened = true;
    store_release(word, 1U);
  });
  const Deadline latest = Deadline::after_ms(kRemoteAccessMs);
  (void)own[0].await_own_calls();
  const bool waited = !enqueued || opened || latest.passed();
  opener.join();
  return unless(waited, "did not wait");
}

// An access that never ends: all ranks wait for it until the same deadline.
std::string wait_no_longer_than_the_deadline(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  const Shown shown(rig, own);
  await_all(own, shown);
  abort_during_remote_access(own, rank);
  for (int i = 0; i < 6; ++i) {  // The first rank waits; any other may take long on a loaded machine.
    const Deadline latest = Deadline::after_ms(kRemoteAccessMs);
    (void)own[0].await_own_calls();
    if (!latest.passed()) return "";
  }
  return "waits again and again";
}

// Rank 0 announces its buffers but does not call: the others stay inside until it aborts.
std::string show_who_is_inside(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  if (rank == 0) say(rig, own, rank, {.offset = 0, .window = 1});
  const Shown shown(rig, own);
  await_all(own, shown);
  if (rank != 0) (void)all_reduce(own, shown.at(0), shown.at(0), 0);
  for (const Rank peer : {1U, 2U}) {
    while (rank == 0 && !in_remote_access(own, peer) && own[0].failure().ok()) std::this_thread::yield();
  }
  if (rank == 0) own[0].abort();
  while (own[0].failure().ok()) std::this_thread::yield();
  (void)own[0].await_own_calls();
  if (in_remote_access(own, rank)) return "still there";
  return unless(own[0].failure().message().find("rank 0 aborted") != std::string::npos, own[0].failure().message());
}

// Rank 0's stream is blocked until the others have failed. They have announced readable buffers, and rank 0 must not
// read them. Rank 0 repeats its announcement when it runs, while the others may read it.
std::string stay_out_after_a_failure(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  if (rank == 0) say(rig, own, rank, {.offset = 0, .window = 1});
  Shown shown(rig, own);
  await_all(own, shown);
  shown.write(0, static_cast<std::int32_t>(rank + 1));
  auto* word = own.take<std::uint32_t>(1, 0);
  if (rank == 0) (void)rig.device().hold_until(word, 1, own.stream(0));
  (void)all_reduce(own, shown.at(0), shown.at(0), rank == 0 ? 0 : 50);
  while (own[0].failure().ok()) std::this_thread::yield();
  store_release(word, 1U);
  const std::int32_t value = shown.read(0);
  return unless(value == static_cast<std::int32_t>(rank + 1), "there is " + std::to_string(value));
}

class RemoteAccessOfProcesses : public CallsOfProcesses {};

TEST_P(RemoteAccessOfProcesses, RejectsBufferBeginningOutsideWindow) { expect_right(reject_begin_outside); }
TEST_P(RemoteAccessOfProcesses, RejectsBufferEndingOutsideWindow) { expect_right(reject_end_outside); }
TEST_P(RemoteAccessOfProcesses, RejectsBufferWrappingAround) { expect_right(reject_wrap_around); }
TEST_P(RemoteAccessOfProcesses, RejectsBareAddresses) { expect_right(reject_bare_addresses); }
TEST_P(RemoteAccessOfProcesses, RejectsUnregisteredWindow) { expect_right(reject_unregistered); }
TEST_P(RemoteAccessOfProcesses, SynchronizeWaitsForIt_AfterFailure) { expect_right(synchronize_during_remote_access); }
TEST_P(RemoteAccessOfProcesses, ShrinkWaitsForIt) { expect_right(shrink_during_remote_access); }
TEST_P(RemoteAccessOfProcesses, DestroyWaitsForIt) { expect_right(destroy_during_remote_access); }
TEST_P(RemoteAccessOfProcesses, OwnCallIsWaitedFor) { expect_right(wait_for_the_own_call); }
TEST_P(RemoteAccessOfProcesses, IsVisibleOnBoard) { expect_right(show_who_is_inside); }
TEST_P(RemoteAccessOfProcesses, DoesNotBegin_AfterFailure) { expect_right(stay_out_after_a_failure); }

INSTANTIATE_TEST_SUITE_P(All, RemoteAccessOfProcesses, testing::ValuesIn(shared_device_kinds()), kind_of);

class RemoteAccessOfDevices : public CallsOfDevices {};

TEST_F(RemoteAccessOfDevices, RejectsBufferBeginningOutsideWindow) { expect_right(reject_begin_outside); }
TEST_F(RemoteAccessOfDevices, RejectsBufferEndingOutsideWindow) { expect_right(reject_end_outside); }
TEST_F(RemoteAccessOfDevices, RejectsBufferWrappingAround) { expect_right(reject_wrap_around); }
TEST_F(RemoteAccessOfDevices, RejectsBareAddresses) { expect_right(reject_bare_addresses); }
TEST_F(RemoteAccessOfDevices, SynchronizeWaitsForIt_AfterFailure) { expect_right(synchronize_during_remote_access); }
TEST_F(RemoteAccessOfDevices, ShrinkWaitsForIt) { expect_right(shrink_during_remote_access); }
TEST_F(RemoteAccessOfDevices, OwnCallIsWaitedFor) { expect_right(wait_for_the_own_call); }
TEST_F(RemoteAccessOfDevices, IsWaitedForUntilDeadline) { expect_right(wait_no_longer_than_the_deadline); }
TEST_F(RemoteAccessOfDevices, IsVisibleOnBoard) { expect_right(show_who_is_inside); }

}  // namespace
}  // namespace tutti::test
