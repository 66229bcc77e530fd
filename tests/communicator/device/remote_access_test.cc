// Thread blocks access memory of peers only if it is registered, and not after a failure. A rank waits until peers no
// longer access its memory before it frees the memory.
#include <atomic>
#include <thread>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/communicator/call/operation.h"
#include "src/communicator/planning/planning.h"
#include "tests/communicator/device/windowed_ranks.h"

namespace tutti::test {
namespace {

// Returns after all ranks have registered their memory. A failure before that would end the registration.
void await_all(DeviceRanks& own, const Shown& shown) {
  const Status status = all_reduce(own, shown.at(kCount), shown.at(kCount), 0);
  EXPECT_TRUE(status.ok()) << status.message();
  own.synchronize();
}

// Writes the record by which a rank announces its buffers for the second exchange, without a call. Must run before the
// rank registers a window. The sequence number counts two gathers of the registration, await_all() and the announced
// call.
void say(DeviceRig& rig, DeviceRanks& own, Rank rank, const BufferLocation& place) {
  CallRecord call =
      record_of(call_of(Collective::all_reduce, DataType::int32, kCount, nullptr, nullptr), own[0].options());
  call.sequence = own[0].board().last(rank) + 4;
  AddressRecord record;
  record.sequence = 2;
  record.input = record.output = place;
  record.signature = signature_of(call).word;
  AddressRecord* records = own.backend(0).peers().records(rank).value();
  for (std::uint32_t channel = 0; channel < kMaxChannels; ++channel) {
    auto* at = reinterpret_cast<std::byte*>(records + 2 * channel + record.sequence % 2);
    EXPECT_TRUE(rig.device().upload(at, std::as_bytes(std::span(&record, 1))).ok());
  }
}

// Returns work in which rank 1 announces an invalid buffer. Peers must report a mismatched call and not access the
// buffer.
Work refuse(const BufferLocation& place) {
  return [place](DeviceRig& rig, DeviceRanks& own, Rank rank) -> std::string {
    if (rank == 1) say(rig, own, rank, place);
    Shown shown(rig, own);  // Becomes window 1.
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

bool in_remote_access(DeviceRanks& own, Rank rank) { return own[0].board().access_words(rank)->any(); }

// Returns the counter of remote accesses of rank 1 for a channel that no call uses.
std::uint32_t& odd_access(DeviceRanks& own) { return *own[0].board().access_words(1)->of(AccessWords::kCount - 1); }

// Marks rank 1 as accessing memory of peers. Rank 0 aborts when it sees the mark. Returns after the failure.
void abort_during_remote_access(DeviceRanks& own, Rank rank) {
  if (rank == 1) store_release(&odd_access(own), 1U);
  while (rank == 0 && load_acquire(&odd_access(own)) == 0) std::this_thread::yield();
  if (rank == 0) own[0].abort();
  while (own[0].failure().ok()) std::this_thread::yield();
}

// Returns whether a rank has begun to wait for remote accesses. Not inlined: gcc 12 would assume that the board is
// null.
[[gnu::noinline]] bool is_waiting_for_remote_access(DeviceRanks& own) {
  const auto* header = reinterpret_cast<const BoardHeader*>(own[0].board().segment().data());
  return load_acquire(&header->remote_access_deadline_ns) != 0;
}

// Clears the mark of rank 1 after another rank has begun to wait, or after a timeout. Ranks wait when they end, if not
// earlier.
void leave_after_remote_access(DeviceRanks& own) {
  const Deadline longest = Deadline::after_ms(20 * kRemoteAccessMs);
  while (!is_waiting_for_remote_access(own) && !longest.passed()) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) std::this_thread::yield();
  store_release(&odd_access(own), 0U);
}

// Rank 1 accesses memory of all ranks after the failure, until another rank waits for it. If `wait` returns during the
// access, before its deadline, the rank did not wait.
std::string wait_for_remote_access_during(DeviceRig& rig, DeviceRanks& own, Rank rank, void (*wait)(Communicator&)) {
  const Shown shown(rig, own);
  // Earlier than the deadline of the wait, since no rank fails before all have reached await_all().
  const Deadline latest = Deadline::after_ms(kRemoteAccessMs);
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
  return wait_for_remote_access_during(rig, own, rank,
                                       [](Communicator& ours) { (void)ours.on_device()->await_own_calls(); });
}

std::string shrink_during_remote_access(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  return wait_for_remote_access_during(rig, own, rank, [](Communicator& ours) {
    const auto part = ours.shrink({1}, ours.options());
    EXPECT_TRUE(part.ok());
  });
}

// Like wait_for_remote_access_during(), for a communicator that is destroyed. tutti_comm_destroy() unmaps its board, so
// the test reads the counter through another mapping.
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

// A call is blocked in the rank's stream during the failure, and is released after the rank has begun to wait for it.
// await_own_calls() must not return before that.
std::string wait_for_the_own_call(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  const Shown shown(rig, own);
  await_all(own, shown);
  auto* word = own.take<std::uint32_t>(1, 0);
  (void)rig.device().hold_until(word, 1, own.stream(0));
  // Fails if rank 0 has already aborted.
  const bool enqueued = all_reduce(own, shown.at(0), shown.at(0), 0).ok();
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
  (void)own.backend(0).await_own_calls();
  const bool waited = !enqueued || opened || latest.passed();
  opener.join();
  return unless(waited, "did not wait");
}

// Rank 1 never clears its mark. All ranks wait until a common deadline, so that a second wait of a rank returns at
// once.
std::string wait_no_longer_than_the_deadline(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  const Shown shown(rig, own);
  await_all(own, shown);
  abort_during_remote_access(own, rank);
  // Tries several times, since any wait may take long on a busy machine.
  for (int i = 0; i < 6; ++i) {
    const Deadline latest = Deadline::after_ms(kRemoteAccessMs);
    (void)own.backend(0).await_own_calls();
    if (!latest.passed()) return "";
  }
  return "waits again and again";
}

// Rank 0 announces its buffers but does not call. Its peers access the buffers and wait until rank 0 aborts. The board
// must show the accesses meanwhile, but not afterwards.
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
  (void)own.backend(0).await_own_calls();
  if (in_remote_access(own, rank)) return "still there";
  return unless(own[0].failure().message().find("rank 0 aborted") != std::string::npos, own[0].failure().message());
}

// The stream of rank 0 is blocked until its peers have failed. Their buffers are announced and readable, but rank 0
// must not access them, so no buffer changes. When its call runs, rank 0 announces its buffers again, and peers may
// read that record.
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
