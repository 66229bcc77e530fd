// Calls in a held stream that run after their communicator has failed and been destroyed. Memory that their thread
// blocks access must still exist, and no other communicator may use it.
#include <algorithm>
#include <functional>

#include "src/base/atomic.h"
#include "src/bootstrap/bootstrap.h"
#include "tests/bootstrap/shared_unique_id.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kCount = 1000;
// Size of the part of the receive buffers that has the lanes of the first call.
constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr int kLooks = 3'000;  // Checks that a call has not completed.

// One of two ranks, each in its own process. They create sub-communicators of the same communicator, one after the
// other.
class LateRank {
 public:
  // The rig must never be destroyed, since streams may use its memory until the process ends.
  LateRank(DeviceRig& rig, const UniqueId& id, Rank rank)
      : rig_(rig), ranks_(rig, joined(id, rank)), rank_(rank), held_(rig.make_stream()) {
    sum_ = ranks_.take<std::int32_t>(kCount);
    word_ = ranks_.take<std::uint32_t>(1);
    for (std::byte*& copy : copies_) copy = rig.device().allocate(kBytes).value();
    split();
  }

  void split() { part_ = std::move(ranks_[0].split(0, 0, ranks_[0].options())).value(); }
  Communicator& part() { return *part_; }

  // Blocks work in the held stream until release_all().
  void hold() { ASSERT_TRUE(rig_.device().hold_until(word_, 1, held_).ok()); }
  void release_all() {
    store_release(word_, 1U);
    EXPECT_TRUE(rig_.synchronize(held_).ok());
  }
  DeviceStream held() const { return held_; }
  DeviceStream stream() const { return ranks_.stream(0); }

  Status add(std::int32_t value, DeviceStream stream) {
    std::fill_n(sum_, kCount, value);
    Call call = call_of(Collective::all_reduce, DataType::int32, kCount, sum_, sum_);
    DeviceCall entry = ranks_.call(0, call);
    entry.communicator = &part();
    entry.options.timeout_ms = 120'000;  // ends_early() takes long on a busy machine.
    entry.stream = stream;
    return enqueue({&entry, 1});
  }
  std::int32_t sum() {
    ranks_.synchronize();
    return std::count(sum_, sum_ + kCount, sum_[0]) == static_cast<std::ptrdiff_t>(kCount) ? sum_[0] : -1;
  }
  // Returns a text with the sum. If it is not the expected one, returns the error of the communicator, if any. A
  // correct sum counts although the other rank may already have ended.
  std::string outcome(std::int32_t expected) {
    const std::int32_t value = sum();
    const Status failure = value == expected ? Status() : part().failure();
    return failure.ok() ? "the sum is " + std::to_string(value) : failure.message();
  }
  // Returns whether the work in the stream completes within kLooks checks, although the other rank has not called.
  bool ends_early() {
    const auto end = rig_.device().make_event().value();
    EXPECT_TRUE(end->record(stream()).ok());
    for (int look = 0; look < kLooks; ++look) {
      if (end->reached().value()) return true;
      std::this_thread::yield();
    }
    return false;
  }

  // Receive buffers of the other rank for data of this rank, and of this rank for data of the other.
  struct Lanes {
    std::byte* theirs;
    std::byte* own;
  };
  Lanes lanes() {
    auto* records = reinterpret_cast<std::byte*>(part().on_device()->peers().records(1 - rank_).value());
    return {records - part().on_device()->peers().lanes().bytes,
            part().on_device()->peers().own_memory().exported_lanes()};
  }
  // keep(), store_again() and load() imitate thread blocks that run late. keep() saves the bytes of the lanes,
  // store_again() stores them again, and load() reads the lanes.
  void keep(const Lanes& lanes) {
    ASSERT_TRUE(rig_.device().copy(copies_[0], lanes.theirs, kBytes, stream()).ok());
    ASSERT_TRUE(rig_.synchronize(stream()).ok());
  }
  void store_again(const Lanes& lanes) {
    ASSERT_TRUE(rig_.device().copy(lanes.theirs, copies_[0], kBytes, held_).ok());
  }
  void load(const Lanes& lanes) {
    for (const std::byte* from : {lanes.theirs, lanes.own})
      ASSERT_TRUE(rig_.device().copy(copies_[1], from, kBytes, held_).ok());
  }

  void abort() { part_->abort(); }
  void end_part() { part_.reset(); }
  void free_kept() { rig_.device().free_kept(); }

 private:
  static Communicators joined(const UniqueId& id, Rank rank) {
    Communicators members;
    members.push_back(std::move(Communicator::create(id, rank, 2, {})).value());
    return members;
  }

  DeviceRig& rig_;
  DeviceRanks ranks_;
  const Rank rank_;
  const DeviceStream held_;
  std::int32_t* sum_;
  std::uint32_t* word_;
  std::byte* copies_[2];
  std::unique_ptr<Communicator> part_;
};

class LateCalls : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    Processes probe;
    probe.start([]() -> std::string { return GetParam().make() == nullptr ? "none" : "there"; });
    if (probe.report(0) != "there") GTEST_SKIP() << "there is no such device here";
  }
  void start(Rank rank, const std::function<std::string(LateRank&)>& work) {
    processes_.start([=, this] { return work(*new LateRank(*GetParam().make().release(), meeting_.id(), rank)); });
  }

  Meeting meeting_;
  Processes processes_;
};

// Rank 0 destroys a communicator while a call in the held stream has not stored its data. The stores run after both
// ranks have created the next communicator. They must not look like data of rank 0 there.
TEST_P(LateCalls, DoNotWriteIntoNextCommunicator) {
  const Gate summed, stored, looked;
  start(0, [&](LateRank& rank) -> std::string {
    if (!rank.add(1, rank.stream()).ok() || rank.sum() != 3) return "no first sum";
    summed.wait();  // Rank 1 needs its sum before the abort ends its communicator.
    const LateRank::Lanes lanes = rank.lanes();
    rank.keep(lanes);
    rank.hold();
    if (!rank.add(1, rank.held()).ok()) return "not enqueued";
    rank.store_again(lanes);
    rank.abort();
    rank.end_part();
    rank.split();
    rank.release_all();
    stored.open();
    looked.wait();
    if (!rank.add(10, rank.stream()).ok()) return "not enqueued";
    return rank.outcome(30);
  });
  start(1, [&](LateRank& rank) -> std::string {
    if (!rank.add(2, rank.stream()).ok() || rank.sum() != 3) return "no first sum";
    summed.open();
    while (rank.part().failure().ok()) std::this_thread::yield();
    rank.end_part();
    rank.split();
    stored.wait();
    if (!rank.add(20, rank.stream()).ok()) return "not enqueued";
    const bool early = rank.ends_early();
    looked.open();
    return (early ? "without rank 0 " : "") + rank.outcome(30);
  });
  for (const std::string& report : processes_.reports()) EXPECT_EQ(report, "the sum is 30");
}

// Thread blocks load from lanes after both ranks have destroyed the communicator. The memory must exist, even if the
// device releases the memory that it keeps for reuse.
TEST_P(LateCalls, ReadMemoryThatStillExists) {
  const Gate summed;
  start(0, [&](LateRank& rank) -> std::string {
    if (!rank.add(1, rank.stream()).ok() || rank.sum() != 3) return "no first sum";
    summed.wait();
    rank.hold();
    if (!rank.add(1, rank.held()).ok()) return "not enqueued";
    rank.load(rank.lanes());
    rank.abort();
    rank.end_part();
    rank.free_kept();
    rank.release_all();
    return "there";
  });
  start(1, [&](LateRank& rank) -> std::string {
    if (!rank.add(2, rank.stream()).ok() || rank.sum() != 3) return "no first sum";
    summed.open();
    while (rank.part().failure().ok()) std::this_thread::yield();
    rank.end_part();
    rank.free_kept();
    return "there";
  });
  for (const std::string& report : processes_.reports()) EXPECT_EQ(report, "there");
}

INSTANTIATE_TEST_SUITE_P(All, LateCalls, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
