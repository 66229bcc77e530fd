// Slots of lanes over RDMA in memory of a device, which the test emulates. Once the carrier has registered the memory,
// no processor can access it.
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>

#include "tests/rdma/carriers.h"
#include "transports/shm/segment.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kLane = 3;
constexpr std::size_t kBytes = HalfLane::kSlots * kSlotBytes;

enum class Order : std::uint8_t { kept, read_back };

// Memory that is mapped twice: for the carrier, and for the test.
class TestRegion {
 public:
  explicit TestRegion(Order order) : segment_(std::move(Segment::create("tutti-test", kBytes)).value()) {
    hidden_ = static_cast<std::byte*>(map());
    region_.memory = LaneMemory(hidden_, [](std::byte* memory) { ::munmap(memory, kBytes); });
    region_.bytes = kBytes;
    region_.kind = MemoryKind::host;
    region_.ordered = order == Order::kept;
    region_.no_dma_buf = "a test has none";
    region_.name = "a device of a test";
  }
  const DeviceRegion& requested() const { return region_; }
  // Registers the memory with the carrier, and makes it inaccessible otherwise.
  LaneMemory reached_by(Carrier& carrier) {
    auto reached = carrier.register_device_memory(region_);
    EXPECT_TRUE(reached.ok());
    how = reached.value().how;
    EXPECT_EQ(::mprotect(hidden_, kBytes, PROT_NONE), 0);
    region_.memory = nullptr;
    return std::move(reached).value().memory;
  }
  std::byte* shown(const std::byte* slot) const { return segment_.data() + (slot - hidden_); }
  std::string how;

 private:
  void* map() const { return ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment_.descriptor(), 0); }
  Segment segment_;
  std::byte* hidden_;
  DeviceRegion region_;
};

void fill(std::byte* data, std::uint64_t number, std::uint32_t bytes) {
  std::mt19937_64 random(number);
  std::generate_n(data, bytes, [&] { return static_cast<std::byte>(random()); });
}

class VerbsDeviceMemory : public testing::TestWithParam<Order> {
 protected:
  VerbsDeviceMemory() {
    writer_slots_ = writer_.reached_by(*pair_.writer.carrier);
    reader_slots_ = reader_.reached_by(*pair_.reader.carrier);
    HalfLane& reading = pair_.reader.add_apart(kLane, LaneEnd::reader, reader_slots_);
    const auto landing = pair_.reader.carrier->register_reader(kLane, reading);
    EXPECT_TRUE(landing.ok());
    HalfLane& writing = pair_.writer.add_apart(kLane, LaneEnd::writer, writer_slots_);
    EXPECT_TRUE(pair_.writer.carrier->attach(kLane, writing, landing.value()).ok());
  }
  std::byte* slot(std::uint64_t number) { return writer_.shown(slot_of(pair_.writer.halves.at(kLane).view, number)); }
  std::byte* landed(std::uint64_t number) { return reader_.shown(slot_of(pair_.reader.halves.at(kLane).view, number)); }

  CarrierPair pair_{{"rxe0", "rxe1"}, {"rxe1", "rxe0"}};
  TestRegion writer_{GetParam()}, reader_{GetParam()};
  LaneMemory writer_slots_, reader_slots_;
};

TEST_P(VerbsDeviceMemory, CarriesMessagesOfAllSizes_WithoutCpuAccess) {
  EXPECT_NE(reader_.how.find("rxe0 by its address"), std::string::npos) << reader_.how;
  const std::uint32_t sizes[] = {0, 1, kEagerBytes, 4096, 64 << 10, kSlotBytes};
  for (std::uint64_t number = 0; number < 3 * HalfLane::kSlots; ++number) {
    const std::uint32_t bytes = sizes[number % std::size(sizes)];
    fill(slot(number), number, bytes);
    pair_.reader.on_arrival = [&](const MessageHead& head) {
      std::vector<std::byte> right(bytes);
      fill(right.data(), number, bytes);
      EXPECT_EQ(head.number, number);
      EXPECT_TRUE(std::equal(right.begin(), right.end(), landed(number))) << number;
    };
    ASSERT_TRUE(pair_.writer.put(kLane, number, bytes).value());
    pair_.until([&] { return pair_.reader.arrivals == number + 1 && pair_.writer.gone[kLane] == number + 1; });
  }
}

TEST_P(VerbsDeviceMemory, ReportsMessages_AfterReadBack) {
  for (std::uint64_t number = 0; number < 4; ++number) ASSERT_TRUE(pair_.writer.put(kLane, number, 4096).value());
  bool held_back = false;
  pair_.until([&] {
    held_back = held_back || pair_.reader.carrier->defers_messages();
    return pair_.reader.arrivals == 4;
  });
  EXPECT_EQ(held_back, GetParam() == Order::read_back);
  EXPECT_FALSE(pair_.reader.carrier->defers_messages());
}

TEST_P(VerbsDeviceMemory, DoesNotSleep_WhileMessagesAreReadBack) {
  for (std::uint64_t number = 0; number < 4; ++number) {
    ASSERT_TRUE(pair_.writer.put(kLane, number, 4096).value());
    while (pair_.reader.arrivals <= number) {
      pollfd waiting = {pair_.reader.carrier->descriptor(), POLLIN, 0};
      if (pair_.reader.carrier->arm()) {
        ASSERT_EQ(::poll(&waiting, 1, 60'000), 1);
      }
      ASSERT_TRUE(pair_.reader.advance().ok());
    }
  }
}

// After the completion of a read, the thread can sleep, whether the message of the read is still wanted or not.
// Soft-RoCE completes reads before notifications are requested: the request then applies to the next read.
TEST_P(VerbsDeviceMemory, AllowsSleep_AfterReadBack) {
  constexpr std::uint64_t kMessages = HalfLane::kSlots;
  pollfd waiting = {pair_.reader.carrier->descriptor(), POLLIN, 0};
  for (std::uint64_t number = 0; number < kMessages; ++number) {
    const auto is_here = [&] { return pair_.reader.arrivals > number; };
    const bool forgotten = number + 1 == kMessages;
    ASSERT_TRUE(pair_.writer.put(kLane, number, 4096).value());
    pair_.until([&] { return is_here() || pair_.reader.carrier->defers_messages(); });
    if (number % 2 == 0) (void)pair_.reader.carrier->arm();
    if (forgotten) pair_.reader.carrier->forget(kLane, LaneEnd::reader);
    pair_.until([&] { return pair_.writer.carrier->acknowledged() && (forgotten || is_here()); });
    if (number % 2 == 0) continue;
    // Other operations, such as receives, complete.
    const Deadline deadline = Deadline::after_ms(10'000);
    while (!pair_.reader.carrier->arm() || ::poll(&waiting, 1, 0) != 0) {
      ASSERT_FALSE(deadline.passed()) << "no thread can sleep after message " << number;
      ASSERT_NO_FATAL_FAILURE(pair_.advance());
    }
  }
}

TEST_P(VerbsDeviceMemory, ForgetsLanes_WithMessagesBeingReadBack) {
  ASSERT_TRUE(pair_.writer.put(kLane, 0, 4096).value());
  pair_.until([&] { return pair_.reader.carrier->defers_messages() || pair_.reader.arrivals == 1; });
  pair_.reader.carrier->forget(kLane, LaneEnd::reader);
  pair_.reader.halves.clear();
  reader_slots_ = nullptr;
  EXPECT_FALSE(pair_.reader.carrier->defers_messages());
  const std::uint64_t reported = pair_.reader.arrivals;
  pair_.until([&] { return pair_.writer.carrier->acknowledged(); });
  EXPECT_EQ(pair_.reader.arrivals, reported);
}

// The lanes of a connection, and their memory, outlive the carrier.
TEST_P(VerbsDeviceMemory, OutlivesItsCarrier) {
  pair_.writer.carrier = nullptr;
  pair_.reader.carrier = nullptr;
  EXPECT_NE(reader_slots_, nullptr);
}

INSTANTIATE_TEST_SUITE_P(, VerbsDeviceMemory, testing::Values(Order::kept, Order::read_back), [](const auto& order) {
  return std::string(order.param == Order::kept ? "InOrder" : "ReadBack");
});

// Uses a small message, which would otherwise be inline in its record.
TEST(VerbsDeviceRegistration, MayExistAtOneEndOnly) {
  for (const bool reads : {true, false}) {
    CarrierPair pair({"rxe0"}, {"rxe1"});
    TestRegion region(Order::read_back);
    const LaneMemory slots = region.reached_by(reads ? *pair.reader.carrier : *pair.writer.carrier);
    HalfLane& reading =
        reads ? pair.reader.add_apart(kLane, LaneEnd::reader, slots) : pair.reader.add(kLane, LaneEnd::reader);
    HalfLane& writing =
        reads ? pair.writer.add(kLane, LaneEnd::writer) : pair.writer.add_apart(kLane, LaneEnd::writer, slots);
    const auto landing = pair.reader.carrier->register_reader(kLane, reading);
    ASSERT_TRUE(landing.ok() && pair.writer.carrier->attach(kLane, writing, landing.value()).ok());
    std::byte* from = slot_of(writing.view, 0);
    std::byte* to = slot_of(reading.view, 0);
    (reads ? to : from) = region.shown(reads ? to : from);
    fill(from, 0, 100);
    ASSERT_TRUE(pair.writer.put(kLane, 0, 100).value());
    pair.until([&] { return pair.reader.arrivals == 1; });
    EXPECT_TRUE(std::equal(from, from + 100, to));
  }
}

// The memory is registered for two ports, one of which the connection does not use.
TEST(VerbsDeviceRegistration, MayPrecedeConnection_WithFewerPorts) {
  CarrierEnd writer({"rxe0"}), reader({"rxe1", "rxe0"});
  TestRegion early(Order::read_back), late(Order::read_back);
  const LaneMemory before = early.reached_by(*reader.carrier);
  ASSERT_TRUE(reader.carrier->connect(writer.carrier->address()).ok());
  ASSERT_TRUE(writer.carrier->connect(reader.carrier->address()).ok());
  const LaneMemory after = late.reached_by(*reader.carrier);
  std::uint32_t lane = kLane;
  for (const LaneMemory& slots : {before, after}) {
    const auto landing = reader.carrier->register_reader(lane, reader.add_apart(lane, LaneEnd::reader, slots));
    ASSERT_TRUE(landing.ok());
    ASSERT_TRUE(writer.carrier->attach(lane, writer.add(lane, LaneEnd::writer), landing.value()).ok());
    ASSERT_TRUE(writer.put(lane, 0, 4096).value());
    const Deadline deadline = Deadline::after_ms(60'000);
    for (const std::uint64_t reported = reader.arrivals; reader.arrivals == reported;) {
      ASSERT_FALSE(deadline.passed()) << "it hangs";
      ASSERT_TRUE(writer.advance().ok() && reader.advance().ok());
    }
    ++lane;
  }
}

// Models memory of a GPU for which no driver supports the registration.
TEST(VerbsDeviceRegistration, Fails_WhenMemoryIsInaccessible) {
  CarrierEnd end({"rxe0"});
  TestRegion region(Order::kept);
  DeviceRegion requested = region.requested();
  ASSERT_EQ(::mprotect(requested.memory.get(), kBytes, PROT_NONE), 0);
  Status why = std::move(end.carrier->register_device_memory(requested)).status();
  for (const char* word : {"rxe0", "a device of a test", "by dma-buf: a test has none", "by its address: Bad address"})
    EXPECT_NE(why.message().find(word), std::string::npos) << word << " is not in: " << why.message();
  requested.kind = MemoryKind::cuda;
  why = std::move(end.carrier->register_device_memory(requested)).status();
  EXPECT_NE(why.message().find("nvidia-peermem"), std::string::npos) << why.message();
}

// Soft-RoCE does not support dma-buf: its error is reported, and the address is tried.
TEST(VerbsDeviceRegistration, FallsBackToAddress_WhenDmaBufIsRejected) {
  CarrierEnd end({"rxe0"});
  TestRegion region(Order::kept);
  DeviceRegion requested = region.requested();
  const File no_dma_buf = std::move(Segment::create("tutti-test", kBytes).value().duplicate()).value();
  requested.dma_buf = no_dma_buf.get();
  EXPECT_EQ(end.carrier->register_device_memory(requested).value().how, "rxe0 by its address");
}

}  // namespace
}  // namespace tutti::test
