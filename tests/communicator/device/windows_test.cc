// Calls on windows: registered memory of other processes or devices, which thread blocks access in place.
#include "tests/communicator/device/windowed_ranks.h"

namespace tutti::test {
namespace {

// ---- Work of ranks, each with its own rig and communicator ----

std::string sum_in(Shown& shown, DeviceRanks& own, Rank rank) {
  if (shown.window() == 0) return "no window";
  for (int turn = 0; turn < 3; ++turn) {  // Uses both address records of a rank.
    shown.write(0, static_cast<std::int32_t>(rank + 1));
    shown.write(kCount, -7);
    const Status status = all_reduce(own, shown.at(0), shown.at(kCount));
    if (!status.ok()) return status.message();
    own.synchronize();
    if (shown.read(kCount) != 6) return "the sum is " + std::to_string(shown.read(kCount));
    if (shown.read(0) != static_cast<std::int32_t>(rank + 1)) return "the input has changed";
    if (!ran_mapped(own)) return "not mapped";
  }
  return shown.withdraw().message();
}

std::string sum_in_place(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  return sum_in(shown, own, rank);
}

// Processes open the memory of ranks 0 and 2 through a file, and that of rank 1 through a handle.
std::string sum_in_memory_with_file(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  auto memory = rank == 1 ? rig.device().allocate(kBytes) : rig.device().allocate_shared(kBytes);
  File file;
  if (rig.device().share_of(memory.value(), kBytes, file).value().by_file() != (rank != 1)) return "no file";
  file = File();
  Shown shown(rig, own, memory.value());
  return sum_in(shown, own, rank);
}

// Calls must use lanes if a buffer is outside of windows, or if the collective has a root. Only the last call may use
// mapped memory.
std::string call_with_and_without(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  auto* outside = own.take<std::int32_t>(kCount, 1);
  if (Status status = all_reduce(own, outside, outside); !status.ok()) return status.message();
  if (ran_mapped(own)) return "mapped";
  if (Status status = all_reduce(own, shown.at(0), outside); !status.ok()) return status.message();
  if (ran_mapped(own)) return "mapped";
  Call broadcast = call_of(Collective::broadcast, DataType::int32, kCount, shown.at(0), shown.at(0));
  const DeviceCall call = own.call(0, broadcast);
  if (Status status = enqueue({&call, 1}); !status.ok()) return status.message();
  if (ran_mapped(own)) return "mapped";
  std::byte* nowhere = rank == 1 ? nullptr : shown.at(0);  // A call without elements accepts any buffer.
  const DeviceCall empty = own.call(0, call_of(Collective::all_reduce, DataType::int32, 0, nowhere, nowhere));
  if (Status status = enqueue({&empty, 1}); !status.ok()) return status.message();
  own.synchronize();
  if (ran_mapped(own)) return "mapped";
  shown.write(0, static_cast<std::int32_t>(rank));
  if (Status status = all_reduce(own, shown.at(0), shown.at(0)); !status.ok()) return status.message();
  if (shown.read(0) != 3) return "the sum is " + std::to_string(shown.read(0));
  if (!ran_mapped(own)) return "not mapped";
  return shown.withdraw().message();
}

// All-gather in place: the input of each rank is its block of the output, so inputs have different offsets in the
// window.
std::string gather_in_place(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  constexpr std::uint64_t kBlock = kCount / 3;
  Shown shown(rig, own);
  const std::vector<std::int32_t> block(kBlock, static_cast<std::int32_t>(rank));
  (void)rig.device().upload(shown.at(rank * kBlock), std::as_bytes(std::span(block)));
  const DeviceCall call =
      own.call(0, call_of(Collective::all_gather, DataType::int32, kBlock, shown.at(rank * kBlock), shown.at(0)));
  auto* items = own.take<std::int32_t>(kCount, -1);
  if (Status status = enqueue({&call, 1}); !status.ok()) return status.message();
  (void)rig.device().copy(reinterpret_cast<std::byte*>(items), shown.at(0), kCount * sizeof *items, own.stream(0));
  own.synchronize();
  for (std::uint64_t i = 0; i < 3 * kBlock; ++i) {
    if (items[i] != static_cast<std::int32_t>(i / kBlock)) return "element " + std::to_string(i);
  }
  if (!ran_mapped(own)) return "not mapped";
  return shown.withdraw().message();
}

// Ranks that share a GPU request copy engines, in windows that these could read.
std::string request_copy_engines(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  constexpr std::uint64_t kBlock = kCount / 3;
  Shown shown(rig, own, rig.device().allocate_shared(kBytes).value());
  shown.write(0, static_cast<std::int32_t>(rank));
  DeviceCall call =
      own.call(0, call_of(Collective::all_gather, DataType::int32, kBlock, shown.at(0), shown.at(kCount)));
  call.options.algorithm = kCopyEngines;
  call.options.update_agreement_hash();
  auto* items = own.take<std::int32_t>(kCount, -1);
  if (Status status = enqueue({&call, 1}); !status.ok()) return status.message();
  (void)rig.device().copy(reinterpret_cast<std::byte*>(items), shown.at(kCount), kCount * sizeof *items, own.stream(0));
  own.synchronize();
  for (std::uint64_t i = 0; i < 3 * kBlock; ++i) {
    if (items[i] != static_cast<std::int32_t>(i / kBlock)) return "element " + std::to_string(i);
  }
  if (!ran_mapped(own)) return "not mapped";
  return shown.withdraw().message();
}

// All-to-all in place and out of place. In place, the algorithm reads a copy of the input, which no peer can access.
std::string exchange(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  constexpr std::uint64_t kBlock = kCount / 3;
  Shown shown(rig, own);
  for (const std::uint64_t output : {std::uint64_t{0}, kCount}) {
    shown.write(0, static_cast<std::int32_t>(rank));
    DeviceCall call =
        own.call(0, call_of(Collective::all_to_all, DataType::int32, kBlock, shown.at(0), shown.at(output)));
    call.options.algorithm = "direct_mapped";  // Lanes are chosen for short blocks.
    call.options.update_agreement_hash();
    auto* items = own.take<std::int32_t>(kCount, -1);
    if (Status status = enqueue({&call, 1}); !status.ok()) return status.message();
    (void)rig.device().copy(reinterpret_cast<std::byte*>(items), shown.at(output), kCount * sizeof *items,
                            own.stream(0));
    own.synchronize();
    for (std::uint64_t i = 0; i < 3 * kBlock; ++i) {
      if (items[i] != static_cast<std::int32_t>(i / kBlock)) return "element " + std::to_string(i);
    }
    if (!ran_mapped(own)) return "not mapped";
  }
  return shown.withdraw().message();
}

// Rank 1 uses a different part of its window. Peers must access the place that its record announces, and no other
// memory.
std::string sum_at_another_place(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  const std::uint64_t begin = rank == 1 ? kCount : 0;
  shown.write(begin, 2);
  if (Status status = all_reduce(own, shown.at(begin), shown.at(begin)); !status.ok()) return status.message();
  if (shown.read(begin) != 6) return "the sum is " + std::to_string(shown.read(begin));
  if (shown.read(kCount - begin) != 0) return "written elsewhere";
  return shown.withdraw().message();
}

// Returns after all ranks have registered their memory. A failure before that would end the registration.
void await_all_shown(DeviceRanks& own, const Shown& shown) {
  (void)all_reduce(own, shown.at(0), shown.at(0), 0);  // 0: no deadline.
  own.synchronize();
}

std::string break_the_promise(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  await_all_shown(own, shown);
  auto* outside = own.take<std::int32_t>(kCount, 1);
  void* buffer = rank == 2 ? outside : static_cast<void*>(shown.at(0));
  (void)all_reduce(own, buffer, buffer);  // Fails on the rank that calls last.
  while (own[0].failure().ok()) std::this_thread::yield();
  own.synchronize();
  const std::string words = own[0].failure().message();
  return unless(words.find("rank 2 passed buffers outside of symmetric windows") != std::string::npos, words);
}

// Rank 1 does not call, and all ranks must report this. Rank 2 calls and times out before rank 0 calls, or else the
// error could name rank 2 as missing.
std::string time_out(DeviceRig& rig, DeviceRanks& own, Rank rank, const Gate& come) {
  Shown shown(rig, own);
  await_all_shown(own, shown);
  if (rank == 0) come.wait();
  if (rank != 1) (void)all_reduce(own, shown.at(0), shown.at(0), 20);
  own.synchronize();
  if (rank == 2) come.open();
  while (rank != 0 && !own[0].board().failed()) std::this_thread::yield();
  const std::string words = own[0].failure().message();
  return unless(words.find("waited too long for rank 1") != std::string::npos &&
                    words.find("rank 1 has not called it") != std::string::npos,
                words);
}

std::string differ(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  await_all_shown(own, shown);
  Call call =
      call_of(Collective::all_reduce, DataType::int32, rank == 1 ? kCount - 1 : kCount, shown.at(0), shown.at(0));
  const DeviceCall entry = own.call(0, call);
  (void)enqueue({&entry, 1});
  while (own[0].failure().ok()) std::this_thread::yield();
  own.synchronize();
  const std::string words = own[0].failure().message();
  return unless(words.find("disagree") != std::string::npos && words.find("39999") != std::string::npos, words);
}

std::string abort_one(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  await_all_shown(own, shown);
  if (rank != 1) (void)all_reduce(own, shown.at(0), shown.at(0), 0);
  if (rank == 1) own[0].abort();
  own.synchronize();
  const std::string words = own[0].failure().message();
  return unless(words.find("rank 1 aborted") != std::string::npos || rank == 1, words);
}

std::string without_a_promise(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own, rank == 1 ? WindowGuarantee::none : WindowGuarantee::symmetric);
  if (shown.window() != 0) return "a window";
  shown.write(0, 5);
  if (Status status = all_reduce(own, shown.at(0), shown.at(0)); !status.ok()) return status.message();
  if (shown.read(0) != 15) return "the sum is " + std::to_string(shown.read(0));
  return unless(!ran_mapped(own), "mapped");
}

// Returns how much memory of other processes is open. Only the emulator counts it.
std::uint64_t opened_by(DeviceRig& rig) {
  const auto* emulator = dynamic_cast<const HostDevice*>(&rig.device());
  return emulator == nullptr ? 0 : emulator->usage().opened;
}

// Registers and withdraws the same memory three times. Calls must use the window only while it is registered, and peers
// must close the memory when it is withdrawn.
std::string show_again(DeviceRig& rig, DeviceRanks& own, Rank) {
  const std::uint64_t opened = opened_by(rig);
  for (std::int32_t turn = 1; turn <= 3; ++turn) {
    Shown shown(rig, own);
    if (shown.window() == 0) return "no window";
    shown.write(0, turn);
    if (Status status = all_reduce(own, shown.at(0), shown.at(0)); !status.ok()) return status.message();
    if (shown.read(0) != 3 * turn) return "the sum is " + std::to_string(shown.read(0));
    if (!ran_mapped(own)) return "not mapped";
    if (Status status = shown.withdraw(); !status.ok()) return status.message();
    if (own.backend(0).has_window(shown.window())) return "still there";
    if (opened_by(rig) != opened) return "still open";
    shown.write(0, turn);
    if (Status status = all_reduce(own, shown.at(0), shown.at(0)); !status.ok()) return status.message();
    if (shown.read(0) != 3 * turn) return "through lanes the sum is " + std::to_string(shown.read(0));
    if (ran_mapped(own)) return "mapped";
  }
  return "";
}

// Rank 1 registers memory that other processes cannot access. No rank may have a window, and calls must use lanes.
std::string register_private_memory(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  std::byte* memory = rig.device().allocate(kBytes).value();
  auto* host = own.take<std::byte>(kBytes);
  const WindowBuffer buffer = {rank == 1 ? host : memory, kBytes, WindowGuarantee::symmetric};
  const auto shown = own.backend(0).register_window(buffer);
  const bool none = shown.ok() && shown.value() == 0;
  const Status status = all_reduce(own, buffer.memory, buffer.memory);
  own.synchronize();
  rig.device().free(memory);
  return unless(none && status.ok() && !ran_mapped(own), "a window");
}

// ---- Where ranks run ----

class WindowsOfProcesses : public CallsOfProcesses {};

TEST_P(WindowsOfProcesses, AreAccessedInPlace) { expect_right(sum_in_place); }
TEST_P(WindowsOfProcesses, AreOpenedThroughFiles) {
  if (GetParam().name == std::string("host_time_sliced")) GTEST_SKIP() << "this device allocates no memory with files";
  expect_right(sum_in_memory_with_file);
}
TEST_P(WindowsOfProcesses, ServeOnlyCallsWithinThem) { expect_right(call_with_and_without); }
TEST_P(WindowsOfProcesses, MayBeginAtDifferentPlaces) { expect_right(gather_in_place); }
TEST_P(WindowsOfProcesses, ServeAllToAll_InPlaceAndOutOfPlace) { expect_right(exchange); }
TEST_P(WindowsOfProcesses, ServeKernels_WhereRanksOfAGpuRequestCopyEngines) { expect_right(request_copy_engines); }
TEST_P(WindowsOfProcesses, AreUsedAtPlaceOfCall) { expect_right(sum_at_another_place); }
TEST_P(WindowsOfProcesses, NameRankThatBreaksPromise) { expect_right(break_the_promise); }
TEST_P(WindowsOfProcesses, NameMissingRank) {
  const Gate come;
  expect_right([&](auto& rig, auto& own, Rank rank) { return time_out(rig, own, rank, come); });
}
TEST_P(WindowsOfProcesses, ReportMismatchedCalls) { expect_right(differ); }
TEST_P(WindowsOfProcesses, ReportAbort) { expect_right(abort_one); }
TEST_P(WindowsOfProcesses, RequirePromisesOfAllRanks) { expect_right(without_a_promise); }
TEST_P(WindowsOfProcesses, CanBeRegisteredAgain) { expect_right(show_again); }
TEST_P(WindowsOfProcesses, AreUnused_WhenRankCannotShareMemory) { expect_right(register_private_memory); }

TEST_P(WindowsOfProcesses, ReportRankDeath) {
  const Gate gate;
  const Work survive = [&](DeviceRig& rig, DeviceRanks& own, Rank) -> std::string {
    Shown shown(rig, own);
    if (!all_reduce(own, shown.at(0), shown.at(0)).ok()) return "not enqueued";
    gate.open();
    while (own[0].failure().ok()) std::this_thread::yield();
    own.synchronize();
    if (shown.withdraw().ok()) return "withdrawn";
    return unless(own[0].failure().message().find("rank 1 died") != std::string::npos, own[0].failure().message());
  };
  start(0, survive);
  start(1, [](DeviceRig& rig, DeviceRanks& own, Rank) -> std::string {
    const Shown shown(rig, own);
    for (;;) ::pause();
  });
  start(2, survive);
  gate.wait();
  gate.wait();
  processes_.kill(1);
  for (const std::size_t survivor : {0U, 2U}) EXPECT_EQ(processes_.report(survivor), "");
}

INSTANTIATE_TEST_SUITE_P(All, WindowsOfProcesses, testing::ValuesIn(shared_device_kinds()), kind_of);

class WindowsOfDevices : public CallsOfDevices {};

TEST_F(WindowsOfDevices, AreAccessedInPlace) { expect_right(sum_in_place); }
TEST_F(WindowsOfDevices, ServeOnlyCallsWithinThem) { expect_right(call_with_and_without); }
TEST_F(WindowsOfDevices, MayBeginAtDifferentPlaces) { expect_right(gather_in_place); }
TEST_F(WindowsOfDevices, NameRankThatBreaksPromise) { expect_right(break_the_promise); }
TEST_F(WindowsOfDevices, NameMissingRank) {
  const Gate come;
  expect_right([&](auto& rig, auto& own, Rank rank) { return time_out(rig, own, rank, come); });
}
TEST_F(WindowsOfDevices, CanBeRegisteredAgain) { expect_right(show_again); }
TEST_F(WindowsOfDevices, AreUnused_WhenRankCannotShareMemory) { expect_right(register_private_memory); }

}  // namespace
}  // namespace tutti::test
