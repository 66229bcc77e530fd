// Calls in windows: memory of ranks in several processes, or on several devices, that teams work in where it lies.
#include <numeric>

#include "src/bootstrap/bootstrap.h"
#include "tests/bootstrap/meeting.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti {
namespace {

constexpr std::uint64_t kCount = 40000;  // Of two buffers in a window; so many that the tuner's choice is mapped.
constexpr std::size_t kBytes = 2 * kCount * sizeof(std::int32_t);

// One rank's memory, shown to the others: elements of a device that the host cannot reach.
class Shown {
 public:
  Shown(DeviceRig& rig, DeviceRanks& ranks, WindowPromise promise = WindowPromise::symmetric)
      : rig_(rig), ranks_(ranks), memory_(rig.device().allocate(kBytes).value()), window_(show(promise)) {}
  ~Shown() { rig_.device().free(memory_); }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  std::byte* at(std::uint64_t element) const { return memory_ + element * sizeof(std::int32_t); }
  WindowHandle window() const { return window_; }
  WindowHandle show(WindowPromise promise) {
    auto shown = ranks_[0].show_window({memory_, kBytes, promise});
    EXPECT_TRUE(shown.ok()) << (shown.ok() ? "" : std::move(shown).status().message());
    return window_ = shown.value();
  }
  Status withdraw() { return ranks_[0].withdraw_window(window_); }

  void write(std::uint64_t element, std::int32_t value) {
    const std::vector<std::int32_t> items(kCount, value);
    EXPECT_TRUE(rig_.device().upload(at(element), std::as_bytes(std::span(items))).ok());
  }
  // Of kCount elements, which must be equal.
  std::int32_t read(std::uint64_t element) {
    ranks_.synchronize();  // Memory is taken.
    auto* items = ranks_.take<std::int32_t>(kCount, -1);
    const auto* from = at(element);
    EXPECT_TRUE(
        rig_.device().copy(reinterpret_cast<std::byte*>(items), from, kCount * sizeof *items, ranks_.stream(0)).ok());
    ranks_.synchronize();
    EXPECT_EQ(std::count(items, items + kCount, items[0]), static_cast<std::ptrdiff_t>(kCount));
    return items[0];
  }

 private:
  DeviceRig& rig_;
  DeviceRanks& ranks_;
  std::byte* memory_;
  WindowHandle window_;
};

Status all_reduce(DeviceRanks& own, const void* input, void* output, std::int64_t timeout_ms = 60'000) {
  DeviceCall call =
      own.call(0, call_of(Collective::all_reduce, DataType::int32, kCount, input, static_cast<std::byte*>(output)));
  call.options.timeout_ms = patience_ms(own.rig(), timeout_ms);
  return enqueue({&call, 1});
}

// A rank's answer; empty: as wished.
std::string unless(bool right, const std::string& answer) { return right ? "" : answer; }

// ---- What ranks do, wherever they are: each has a rig and a communicator of its own ----

using Work = std::function<std::string(DeviceRig&, DeviceRanks&, Rank)>;

std::string sum_in_place(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  if (shown.window() == 0) return "no window";
  for (int turn = 0; turn < 3; ++turn) {  // Records take turns.
    shown.write(0, static_cast<std::int32_t>(rank + 1));
    shown.write(kCount, -7);
    const Status status = all_reduce(own, shown.at(0), shown.at(kCount));
    if (!status.ok()) return status.message();
    own.synchronize();
    if (shown.read(kCount) != 6) return "the sum is " + std::to_string(shown.read(kCount));
    if (shown.read(0) != static_cast<std::int32_t>(rank + 1)) return "the input has changed";
  }
  if (own[0].mapped_calls() != 3) return std::to_string(own[0].mapped_calls()) + " calls were mapped";
  return shown.withdraw().message();
}

// What lies outside of windows goes through lanes, and so does what others would have to guess.
std::string call_with_and_without(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  auto* outside = own.take<std::int32_t>(kCount, 1);
  if (Status status = all_reduce(own, outside, outside); !status.ok()) return status.message();
  if (Status status = all_reduce(own, shown.at(0), outside); !status.ok()) return status.message();
  Call broadcast = call_of(Collective::broadcast, DataType::int32, kCount, shown.at(0), shown.at(0));
  const DeviceCall call = own.call(0, broadcast);
  if (Status status = enqueue({&call, 1}); !status.ok()) return status.message();
  std::byte* nowhere = rank == 1 ? nullptr : shown.at(0);  // Of a call without elements: anything.
  const DeviceCall empty = own.call(0, call_of(Collective::all_reduce, DataType::int32, 0, nowhere, nowhere));
  if (Status status = enqueue({&empty, 1}); !status.ok()) return status.message();
  own.synchronize();
  if (own[0].mapped_calls() != 0) return "mapped";
  shown.write(0, static_cast<std::int32_t>(rank));
  if (Status status = all_reduce(own, shown.at(0), shown.at(0)); !status.ok()) return status.message();
  if (shown.read(0) != 3) return "the sum is " + std::to_string(shown.read(0));
  if (own[0].mapped_calls() != 1) return "not mapped";
  return shown.withdraw().message();
}

// Each rank's input is its block of the output: they begin elsewhere on each rank.
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
  if (own[0].mapped_calls() != 1) return "not mapped";
  return shown.withdraw().message();
}

// In place it reads a copy, which no other rank reaches.
std::string exchange(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  constexpr std::uint64_t kBlock = kCount / 3;
  Shown shown(rig, own);
  for (const std::uint64_t output : {std::uint64_t{0}, kCount}) {
    shown.write(0, static_cast<std::int32_t>(rank));
    const DeviceCall call =
        own.call(0, call_of(Collective::all_to_all, DataType::int32, kBlock, shown.at(0), shown.at(output)));
    auto* items = own.take<std::int32_t>(kCount, -1);
    if (Status status = enqueue({&call, 1}); !status.ok()) return status.message();
    (void)rig.device().copy(reinterpret_cast<std::byte*>(items), shown.at(output), kCount * sizeof *items,
                            own.stream(0));
    own.synchronize();
    for (std::uint64_t i = 0; i < 3 * kBlock; ++i) {
      if (items[i] != static_cast<std::int32_t>(i / kBlock)) return "element " + std::to_string(i);
    }
  }
  if (own[0].mapped_calls() != 2) return "not mapped";
  return shown.withdraw().message();
}

// The records say where buffers are: nothing is read where a rank did not mean it.
std::string sum_at_another_place(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  const std::uint64_t begin = rank == 1 ? kCount : 0;
  shown.write(begin, 2);
  if (Status status = all_reduce(own, shown.at(begin), shown.at(begin)); !status.ok()) return status.message();
  if (shown.read(begin) != 6) return "the sum is " + std::to_string(shown.read(begin));
  if (shown.read(kCount - begin) != 0) return "written elsewhere";
  return shown.withdraw().message();
}

std::string break_the_promise(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own);
  auto* outside = own.take<std::int32_t>(kCount, 1);
  void* buffer = rank == 2 ? outside : static_cast<void*>(shown.at(0));
  (void)all_reduce(own, buffer, buffer);  // The last one is told at once.
  while (own[0].failure().ok()) std::this_thread::yield();
  own.synchronize();
  const std::string words = own[0].failure().message();
  return unless(words.find("rank 2 passed buffers outside of symmetric windows") != std::string::npos, words);
}

// As in one process: whoever does not come is named, and so are calls that differ. Rank 2 has come, and given up, when
// rank 0 calls: who is late would be named, too. Its own report, of rank 0 perhaps, is not asked for.
std::string wait_in_vain(DeviceRig& rig, DeviceRanks& own, Rank rank, const Gate& come) {
  Shown shown(rig, own);
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
  (void)all_reduce(own, shown.at(0), shown.at(0), 0);  // Without a deadline; when it ends, all have shown their memory.
  own.synchronize();
  if (rank != 1) (void)all_reduce(own, shown.at(0), shown.at(0), 0);
  if (rank == 1) own[0].abort();
  own.synchronize();
  const std::string words = own[0].failure().message();
  return unless(words.find("rank 1 aborted") != std::string::npos || rank == 1, words);
}

std::string without_a_promise(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  Shown shown(rig, own, rank == 1 ? WindowPromise::none : WindowPromise::symmetric);
  if (shown.window() != 0) return "a window";
  shown.write(0, 5);
  if (Status status = all_reduce(own, shown.at(0), shown.at(0)); !status.ok()) return status.message();
  if (shown.read(0) != 15) return "the sum is " + std::to_string(shown.read(0));
  return unless(own[0].mapped_calls() == 0, "mapped");
}

// Of other processes; the twin counts it.
std::uint64_t opened_by(DeviceRig& rig) {
  const auto* twin = dynamic_cast<const HostDevice*>(&rig.device());
  return twin == nullptr ? 0 : twin->usage().opened;
}

// Numbers and addresses come again; what was withdrawn is no window.
std::string show_again(DeviceRig& rig, DeviceRanks& own, Rank) {
  const std::uint64_t opened = opened_by(rig);
  for (std::int32_t turn = 1; turn <= 3; ++turn) {
    Shown shown(rig, own);
    if (shown.window() == 0) return "no window";
    shown.write(0, turn);
    if (Status status = all_reduce(own, shown.at(0), shown.at(0)); !status.ok()) return status.message();
    if (shown.read(0) != 3 * turn) return "the sum is " + std::to_string(shown.read(0));
    if (Status status = shown.withdraw(); !status.ok()) return status.message();
    if (own[0].has_window(shown.window())) return "still there";
    if (opened_by(rig) != opened) return "still open";
    shown.write(0, turn);
    if (Status status = all_reduce(own, shown.at(0), shown.at(0)); !status.ok()) return status.message();
    if (shown.read(0) != 3 * turn) return "through lanes the sum is " + std::to_string(shown.read(0));
  }
  return unless(own[0].mapped_calls() == 3, std::to_string(own[0].mapped_calls()) + " calls were mapped");
}

// Memory that only its own process reaches.
std::string show_what_cannot_be_seen(DeviceRig& rig, DeviceRanks& own, Rank rank) {
  std::byte* memory = rig.device().allocate(kBytes).value();
  auto* host = own.take<std::byte>(kBytes);
  const WindowBuffer buffer = {rank == 1 ? host : memory, kBytes, WindowPromise::symmetric};
  const auto shown = own[0].show_window(buffer);
  const bool none = shown.ok() && shown.value() == 0;
  const Status status = all_reduce(own, buffer.memory, buffer.memory);
  own.synchronize();
  rig.device().free(memory);
  return unless(none && status.ok() && own[0].mapped_calls() == 0, "a window");
}

// ---- Where ranks are ----

constexpr Rank kRanks = 3;

class WindowsOfProcesses : public testing::TestWithParam<DeviceKind> {
 protected:
  // In a process of its own, too: a process that has used CUDA cannot fork.
  void SetUp() override {
    Processes probe;
    probe.start([]() -> std::string { return GetParam().make() == nullptr ? "none" : "there"; });
    if (probe.report(0) != "there") GTEST_SKIP() << "there is no such device here";
  }
  void start(Rank rank, const Work& work) {
    processes_.start([=, this]() -> std::string {
      const auto rig = GetParam().make();
      Communicators members;
      members.push_back(std::move(Communicator::create(meeting_.id(), rank, kRanks, {})).value());
      DeviceRanks own(*rig, std::move(members));
      return work(*rig, own, rank);
    });
  }
  void expect_right(const Work& work) {
    for (Rank rank = 0; rank < kRanks; ++rank) start(rank, work);
    for (const std::string& report : processes_.reports()) EXPECT_EQ(report, "");
  }

  Meeting meeting_;
  Processes processes_;
};

TEST_P(WindowsOfProcesses, AreReadAndWrittenWhereTheyLie) { expect_right(sum_in_place); }
TEST_P(WindowsOfProcesses, ServeOnlyCallsWithinThem) { expect_right(call_with_and_without); }
TEST_P(WindowsOfProcesses, MayBeginElsewhereOnEachRank) { expect_right(gather_in_place); }
TEST_P(WindowsOfProcesses, ServeExchangesInPlaceAndNot) { expect_right(exchange); }
TEST_P(WindowsOfProcesses, AreUsedWhereTheCallSays) { expect_right(sum_at_another_place); }
TEST_P(WindowsOfProcesses, NameWhoBreaksThePromise) { expect_right(break_the_promise); }
TEST_P(WindowsOfProcesses, NameWhoDoesNotCome) {
  const Gate come;
  expect_right([&](auto& rig, auto& own, Rank rank) { return wait_in_vain(rig, own, rank, come); });
}
TEST_P(WindowsOfProcesses, ShowCallsThatDiffer) { expect_right(differ); }
TEST_P(WindowsOfProcesses, HearOfAnAbort) { expect_right(abort_one); }
TEST_P(WindowsOfProcesses, NeedAllPromises) { expect_right(without_a_promise); }
TEST_P(WindowsOfProcesses, AreShownAgain) { expect_right(show_again); }
TEST_P(WindowsOfProcesses, AreNoneWhereARankCannotShowIt) { expect_right(show_what_cannot_be_seen); }

TEST_P(WindowsOfProcesses, HearOfADeath) {
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

// Several devices of one process: threads of the host play them all.
class WindowsOfDevices : public testing::Test {
 protected:
  void expect_right(const Work& work) {
    CommunicatorOptions options;
    options.force();
    Communicators members = std::move(Communicator::create_all(kRanks, options)).value();
    std::vector<std::unique_ptr<DeviceRig>> rigs;
    for (Rank rank = 0; rank < kRanks; ++rank) rigs.push_back(host_rig({.ordinal = rank}));
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        Communicators one;
        one.push_back(std::move(members[rank]));
        DeviceRanks own(*rigs[rank], std::move(one));
        EXPECT_EQ(work(*rigs[rank], own, rank), "") << "rank " << rank;
        (void)own[0].finalize();  // Its part is in the others' reach until all have done theirs.
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(WindowsOfDevices, AreReadAndWrittenWhereTheyLie) { expect_right(sum_in_place); }
TEST_F(WindowsOfDevices, ServeOnlyCallsWithinThem) { expect_right(call_with_and_without); }
TEST_F(WindowsOfDevices, MayBeginElsewhereOnEachRank) { expect_right(gather_in_place); }
TEST_F(WindowsOfDevices, NameWhoBreaksThePromise) { expect_right(break_the_promise); }
TEST_F(WindowsOfDevices, NameWhoDoesNotCome) {
  const Gate come;
  expect_right([&](auto& rig, auto& own, Rank rank) { return wait_in_vain(rig, own, rank, come); });
}
TEST_F(WindowsOfDevices, AreShownAgain) { expect_right(show_again); }
TEST_F(WindowsOfDevices, AreNoneWhereARankCannotShowIt) { expect_right(show_what_cannot_be_seen); }

}  // namespace
}  // namespace tutti
