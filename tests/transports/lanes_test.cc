// Guarantees of every transport with mapped lanes, between two ranks of one process and of two. The suite runs over
// shared memory, the only such transport.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/executor/lane_io.h"
#include "tests/base/share_cpu.h"
#include "tests/bootstrap/processes.h"
#include "tests/transports/specs.h"
#include "transports/shm/shm_transport.h"

namespace tutti::test {
namespace {

constexpr Signature kSignature = {0x5eed};
constexpr std::int64_t kTimeoutMs = 60'000;  // Turns a hang into a failure.

enum class Home : std::uint8_t { one_process, two_processes };

// Rank 1 owns the lanes and reads, rank 0 writes. Each end of a lane is created where it is used.
class Lanes : public testing::TestWithParam<Home> {
 protected:
  using Body = std::function<std::string(std::vector<LanePair>&)>;

  void make(const LaneSpec& spec) {
    specs_.push_back(spec);
    addresses_.push_back(std::move(owner_.create(spec)).value());
  }

  std::vector<LanePair> reading() const { return views(owner_); }

  std::vector<LanePair> writing() {
    auto transport = std::make_unique<ShmTransport>(0);
    std::set<std::uint32_t> passed;
    for (const LaneAddress& address : addresses_) {
      if (!passed.insert(address.segment).second) continue;
      File file = std::move(owner_.segment(address.segment).duplicate()).value();
      Segment memory = std::move(Segment::adopt(std::move(file), address.segment_bytes)).value();
      if (!transport->adopt(1, address.segment, std::move(memory)).ok()) std::abort();
    }
    writer_ = std::move(transport);
    return views(*writer_);
  }

  // Starts the writer, and runs the reader in this process. Both must return "ok".
  void run(const Body& writer, const Body& reader) {
    const auto write = [&] {
      std::vector<LanePair> lanes = writing();
      return writer(lanes);
    };
    std::vector<LanePair> lanes = reading();
    if (GetParam() == Home::two_processes) {
      Processes processes;
      processes.start(write);
      EXPECT_EQ(reader(lanes), "ok");
      EXPECT_EQ(processes.report(0), "ok");
      return;
    }
    std::string written;
    std::thread thread([&] { written = write(); });
    EXPECT_EQ(reader(lanes), "ok");
    thread.join();
    EXPECT_EQ(written, "ok");
  }

 private:
  std::vector<LanePair> views(const ShmTransport& transport) const {
    std::vector<LanePair> views;
    for (std::size_t i = 0; i < specs_.size(); ++i)
      views.push_back(std::move(transport.view(specs_[i], 1, addresses_[i])).value());
    return views;
  }

  ShmTransport owner_{1};
  std::unique_ptr<ShmTransport> writer_;
  std::vector<LaneSpec> specs_;
  std::vector<LaneAddress> addresses_;
};

INSTANTIATE_TEST_SUITE_P(Shm, Lanes, testing::Values(Home::one_process, Home::two_processes), [](const auto& home) {
  return home.param == Home::one_process ? "OneProcess" : "TwoProcesses";
});

template <class Met>
bool wait_until(const Met& met) {
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  for (std::uint32_t polls = 0; !met(); ++polls) {
    if (polls % 64 == 63) share_cpu();
    if (polls % 4096 == 4095 && deadline.passed()) return false;
  }
  return true;
}

// Byte `index` of message `number` of a lane; adjacent bytes, messages and lanes differ.
std::uint8_t content(std::uint64_t lane, std::uint64_t number, std::uint64_t index) {
  return static_cast<std::uint8_t>(lane * 83 + number * 31 + index * 7 + index / 251);
}

std::vector<std::byte> message_of(std::uint64_t lane, std::uint64_t number, std::uint64_t bytes) {
  std::vector<std::byte> message(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) message[i] = std::byte{content(lane, number, i)};
  return message;
}

bool write_slice(LaneState& lane, const std::byte* from, std::uint64_t bytes) {
  if (!wait_until([&] { return slot_free(lane); })) return false;
  std::byte* slot = slot_of(lane.view, lane.next);
  if (bytes > 0) std::memcpy(slot, from, bytes);
  simple_post(lane, kSignature, 0);
  return true;
}

bool read_slice(LaneState& lane, std::byte* to, std::uint64_t bytes) {
  if (!wait_until([&] { return simple_arrived(lane); }) || !simple_matches(lane, kSignature)) return false;
  const std::byte* slot = slot_of(lane.view, lane.next);
  if (bytes > 0) std::memcpy(to, slot, bytes);
  take(lane);
  return true;
}

// Cuts a message to slices that fit a slot. An empty message is one empty slice.
template <class Slice>
bool each_slice(std::uint64_t bytes, std::uint64_t slot_bytes, const Slice& slice) {
  std::uint64_t begin = 0;
  do {
    const std::uint64_t length = std::min(bytes - begin, slot_bytes);
    if (!slice(begin, length)) return false;
    begin += length;
  } while (begin < bytes);
  return true;
}

std::string write_messages(LaneState& lane, const std::vector<std::uint64_t>& sizes) {
  for (std::size_t number = 0; number < sizes.size(); ++number) {
    const std::vector<std::byte> message = message_of(0, number, sizes[number]);
    const bool sent = each_slice(sizes[number], lane.view.slot_bytes, [&](std::uint64_t begin, std::uint64_t bytes) {
      return write_slice(lane, message.data() + begin, bytes);
    });
    if (!sent) return "message " + std::to_string(number) + " could not be sent";
  }
  return "ok";
}

std::string read_messages(LaneState& lane, const std::vector<std::uint64_t>& sizes) {
  for (std::size_t number = 0; number < sizes.size(); ++number) {
    std::vector<std::byte> message(sizes[number]);
    const bool came = each_slice(sizes[number], lane.view.slot_bytes, [&](std::uint64_t begin, std::uint64_t bytes) {
      return read_slice(lane, message.data() + begin, bytes);
    });
    if (!came) return "message " + std::to_string(number) + " did not come";
    if (message != message_of(0, number, sizes[number])) return "message " + std::to_string(number) + " is wrong";
  }
  return "ok";
}

TEST_P(Lanes, CarryEverySizeInOrder) {
  const std::vector<std::uint64_t> sizes = {0, 1, 8, 63, 0, 4096, 131071, 131072, 131073, 1 << 20, 0, 64 << 20, 5};
  make(spec_of(128 * 1024, 3));
  run(
      [&](std::vector<LanePair>& lanes) {
        LaneState lane = {lanes[0].forward};
        return write_messages(lane, sizes);
      },
      [&](std::vector<LanePair>& lanes) {
        LaneState lane = {lanes[0].forward};
        return read_messages(lane, sizes);
      });
}

// Lanes with each number of slots, and with slots smaller than a cache line, wrap around many times.
TEST_P(Lanes, WrapAroundTheirSlots) {
  std::vector<std::uint64_t> sizes(2000);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = i * 7 % 193;
  for (std::uint32_t shift = 0; shift <= 3; ++shift) make(spec_of(128, shift, static_cast<std::uint16_t>(shift)));
  for (std::size_t which = 0; which < 4; ++which) {
    run(
        [&](std::vector<LanePair>& lanes) {
          LaneState lane = {lanes[which].forward};
          return write_messages(lane, sizes);
        },
        [&](std::vector<LanePair>& lanes) {
          LaneState lane = {lanes[which].forward};
          return read_messages(lane, sizes);
        });
  }
}

TEST_P(Lanes, BlockWriter_UntilSlotIsFree) {
  for (std::uint32_t shift = 0; shift <= 3; ++shift) make(spec_of(64, shift, static_cast<std::uint16_t>(shift)));
  std::vector<LanePair> reading_ends = reading(), writing_ends = writing();
  for (std::uint32_t shift = 0; shift <= 3; ++shift) {
    LaneState reader = {reading_ends[shift].forward}, writer = {writing_ends[shift].forward};
    for (int round = 0; round < 3; ++round) {
      std::uint32_t fit = 0;
      for (; slot_free(writer) && fit < 100; ++fit) simple_post(writer, kSignature, 0);
      EXPECT_EQ(fit, round == 0 ? 1U << shift : 1U);
      ASSERT_TRUE(simple_arrived(reader));
      take(reader);
    }
  }
}

TEST_P(Lanes, DoNotAffectEachOther) {
  constexpr std::size_t kLanes = 64;
  for (std::size_t lane = 0; lane < kLanes; ++lane) make(spec_of(4096, 1, static_cast<std::uint16_t>(lane)));
  const auto body = [&](std::vector<LanePair>& lanes, bool writes) -> std::string {
    std::vector<LaneState> states;
    for (const LanePair& lane : lanes) states.push_back({lane.forward});
    for (std::uint64_t number = 0; number < 20; ++number) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::size_t lane = writes ? i : (i * 5 + number) % kLanes;  // The reader uses another order.
        std::vector<std::byte> message = message_of(lane, number, 4096);
        if (writes) {
          if (!write_slice(states[lane], message.data(), 4096)) return "stuck at lane " + std::to_string(lane);
          continue;
        }
        std::vector<std::byte> came(4096);
        if (!read_slice(states[lane], came.data(), 4096) || came != message)
          return "wrong at lane " + std::to_string(lane);
      }
    }
    return "ok";
  };
  run([&](std::vector<LanePair>& lanes) { return body(lanes, true); },
      [&](std::vector<LanePair>& lanes) { return body(lanes, false); });
}

// The answer is in the same slot as the request.
TEST_P(Lanes, RoundTripAnswersInSameSlot) {
  LaneSpec spec = spec_of(256, 2);
  spec.form = LaneForm::round_trip;
  spec.partner_tag = 1;
  make(spec);
  run(
      [](std::vector<LanePair>& lanes) -> std::string {
        LaneState there = {lanes[0].forward}, back = {lanes[0].partner};
        for (std::uint64_t number = 0; number < 500; ++number) {
          *slot_of(there.view, there.next) = std::byte{static_cast<std::uint8_t>(number)};
          simple_post(there, kSignature, 0);
          if (!wait_until([&] { return simple_arrived(back); })) return "no answer";
          const auto answer = std::to_integer<std::uint8_t>(*slot_of(back.view, back.next));
          if (answer != static_cast<std::uint8_t>(number + 1)) return "a wrong answer";
          take(back);
        }
        return "ok";
      },
      [](std::vector<LanePair>& lanes) -> std::string {
        LaneState there = {lanes[0].forward}, back = {lanes[0].partner};
        for (int number = 0; number < 500; ++number) {
          if (!wait_until([&] { return simple_arrived(there); })) return "no question";
          std::byte* slot = slot_of(there.view, there.next);
          if (slot != slot_of(back.view, back.next)) return "the answer has a slot of its own";
          *slot = static_cast<std::byte>(std::to_integer<std::uint8_t>(*slot) + 1);
          take(there);
          simple_post(back, kSignature, 0);
        }
        return "ok";
      });
}

// Both ranks write at the same time, each into the set of slots that the other rank read last.
TEST_P(Lanes, SwapSlots_WithoutTouchingThePartners) {
  LaneSpec spec = spec_of(256, 1);
  spec.form = LaneForm::swap;
  spec.partner_tag = 1;
  make(spec);
  const auto exchange = [](LaneState out, LaneState in, std::uint8_t mark) -> std::string {
    for (std::uint64_t number = 0; number < 500; ++number) {
      const auto mine = static_cast<std::uint8_t>(mark + number);
      *slot_of(out.view, out.next) = std::byte{mine};
      simple_post(out, kSignature, 0);
      if (!wait_until([&] { return simple_arrived(in); })) return "nothing came";
      const auto came = std::to_integer<std::uint8_t>(*slot_of(in.view, in.next));
      if (came != static_cast<std::uint8_t>(mine + 128)) return "message " + std::to_string(number) + " is wrong";
      take(in);
    }
    return "ok";
  };
  run([&](std::vector<LanePair>& lanes) { return exchange({lanes[0].forward}, {lanes[0].partner}, 0); },
      [&](std::vector<LanePair>& lanes) { return exchange({lanes[0].partner}, {lanes[0].forward}, 128); });
}

class LanesOfKilledRank : public Lanes {};
INSTANTIATE_TEST_SUITE_P(Shm, LanesOfKilledRank, testing::Values(Home::two_processes));

// Posted messages can be read; afterwards the lane is empty.
TEST_P(LanesOfKilledRank, DeliverMessagesOfKilledWriter) {
  make(spec_of(4096, 3));
  const Gate posted;
  Processes processes;
  processes.start([&]() -> std::string {
    LaneState lane = {writing()[0].forward};
    for (int number = 0; number < 3; ++number) (void)write_slice(lane, message_of(0, number, 4096).data(), 4096);
    std::memset(slot_of(lane.view, lane.next), 0xee, 100);  // Half a message.
    posted.open();
    for (;;) ::pause();
  });
  posted.wait();
  processes.kill(0);
  EXPECT_EQ(processes.report(0), "killed by signal 9");
  LaneState lane = {reading()[0].forward};
  EXPECT_EQ(read_messages(lane, {4096, 4096, 4096}), "ok");
  for (int look = 0; look < 1000; ++look) ASSERT_FALSE(simple_arrived(lane));
}

TEST_P(LanesOfKilledRank, BlockWriter_AfterReaderWasKilled) {
  make(spec_of(4096, 2));
  std::vector<LanePair> ends = reading();
  const Gate took;
  Processes processes;
  processes.start([&]() -> std::string {  // Here the parent writes into the lane that it owns.
    LaneState lane = {writing()[0].forward};
    std::vector<std::byte> message(4096);
    if (!read_slice(lane, message.data(), 4096)) return "nothing came";
    took.open();
    for (;;) ::pause();
  });
  LaneState lane = {ends[0].forward};
  ASSERT_TRUE(write_slice(lane, message_of(0, 0, 4096).data(), 4096));
  took.wait();
  processes.kill(0);
  EXPECT_EQ(processes.report(0), "killed by signal 9");
  int fit = 0;
  for (; slot_free(lane) && fit < 100; ++fit) simple_post(lane, kSignature, 0);
  EXPECT_EQ(fit, 4);
}

}  // namespace
}  // namespace tutti::test
