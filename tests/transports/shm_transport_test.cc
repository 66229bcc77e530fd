// Placement of lanes in shared memory. Data of a peer is checked before use.
#include "transports/shm/shm_transport.h"

#include <gtest/gtest.h>

#include "tests/transports/specs.h"

namespace tutti::test {
namespace {

struct Offer {
  Offer() : address(std::move(owner.create(spec)).value()) {}
  std::string refusal() {
    ShmTransport peer(0);
    File file = std::move(owner.segment(0).duplicate()).value();
    Segment memory = std::move(Segment::adopt(std::move(file), address.segment_bytes)).value();
    if (!peer.adopt(1, 0, std::move(memory)).ok()) return "not adopted";
    const Status status = peer.view(spec, 1, address).status();
    // The error is a peer's fault and is reported to all ranks, so it is not invalid_argument.
    EXPECT_TRUE(status.ok() || status.code() == Code::invalid_usage) << name(status.code());
    return status.message();
  }
  ShmTransport owner{1};
  LaneSpec spec = spec_of(4096, 3);
  LaneAddress address;
};

TEST(ShmTransport, RejectsAddressesOutsideSegment) {
  const std::string outside = "rank 1 sent an address outside of its segment";
  EXPECT_EQ(Offer().refusal(), "");
  for (const std::uint64_t wrong : {std::uint64_t{1} << 40, ~std::uint64_t{127}, std::uint64_t{8}}) {
    Offer words, slots;
    words.address.words = wrong;
    EXPECT_EQ(words.refusal(), outside);
    slots.address.slots = wrong;
    EXPECT_EQ(slots.refusal(), outside);
  }
  Offer last;
  last.address.words = last.address.segment_bytes - kWordsBytes;  // Its credits would be beyond the end.
  EXPECT_EQ(last.refusal(), outside);
  Offer large;
  large.spec.slot_bytes = 1U << 31;
  EXPECT_EQ(large.refusal(), outside);
}

TEST(ShmTransport, RejectsTooManySlots) {
  for (const std::uint32_t shift : {4U, 63U, 64U, ~0U}) {
    Offer offer;
    offer.spec.slot_shift = shift;
    EXPECT_NE(offer.refusal().find("slots is not supported: the maximum is 8"), std::string::npos) << shift;
  }
}

TEST(ShmTransport, RejectsUnknownAndDuplicateSegments) {
  Offer offer;
  ShmTransport peer(0);
  EXPECT_EQ(peer.view(offer.spec, 1, offer.address).status().message(), "segment 0 of rank 1 is not mapped");
  const auto memory = [&] {
    return std::move(Segment::adopt(std::move(offer.owner.segment(0).duplicate()).value(), 4096)).value();
  };
  EXPECT_TRUE(peer.adopt(1, 0, memory()).ok());
  const Status again = peer.adopt(1, 0, memory());
  EXPECT_EQ(again.code(), Code::invalid_usage);
  EXPECT_EQ(again.message(), "rank 1 passed segment 0 twice");
}

TEST(ShmTransport, UsesLittleAddressSpace_ForFirstLane) {
  const LaneAddress address = std::move(ShmTransport(1).create(spec_of(4096, 3))).value();
  EXPECT_EQ(address.segment_bytes, std::size_t{32} << 20);
}

TEST(ShmTransport, CreatesAnotherSegment_WhenOneIsFull) {
  ShmTransport owner(1);
  std::uint32_t segments = 0;
  for (std::uint16_t channel = 0; channel < 40; ++channel)
    segments = std::move(owner.create(spec_of(4 << 20, 3, channel))).value().segment + 1;
  EXPECT_EQ(segments, 8U);  // 32 MiB each and counters: 1, 1, 3 lanes in the first segments, then 7 in each.
}

}  // namespace
}  // namespace tutti::test
