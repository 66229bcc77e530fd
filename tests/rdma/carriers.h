// Pairs of connected RDMA carriers in one process, and their events.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "transports/verbs/verbs_carrier.h"

namespace tutti::test {

constexpr std::uint32_t kSlotBytes = 192 << 10;

inline LaneSpec lane_spec(std::uint32_t lane, std::uint32_t slot_bytes = kSlotBytes) {
  LaneSpec spec;
  spec.writer = 0;
  spec.reader = 1;
  spec.tag = static_cast<std::uint16_t>(lane);
  spec.slot_bytes = slot_bytes;
  return spec;
}

// Returns the ports of the named devices, in this order.
inline std::vector<VerbsPort> ports_of(const std::vector<std::string>& names, VerbsOptions options = {}) {
  std::vector<VerbsPort> ports;
  for (const std::string& name : names) {
    options.hca = "=" + name;
    auto found = find_verbs_ports(options);
    EXPECT_TRUE(found.ok()) << std::move(found).status().message();
    if (found.ok()) ports.push_back(found.value().front());
  }
  return ports;
}

inline VerbsOptions with_queue_pairs(std::uint32_t count) {
  VerbsOptions options;
  options.queue_pairs = count;
  return options;
}

struct CarrierEnd : CarrierEvents {
  explicit CarrierEnd(const std::vector<std::string>& names, const VerbsOptions& options = {}) {
    auto made = VerbsCarrier::create(ports_of(names, options), options);
    EXPECT_TRUE(made.ok()) << std::move(made).status().message();
    carrier = std::move(made).value();
  }

  Status arrived(const MessageHead& head) override {
    if (on_arrival) on_arrival(head);
    ++arrivals;
    return {};
  }
  Status credited(std::uint32_t lane, std::uint64_t taken) override {
    credits[lane] = taken;
    return {};
  }
  void left(std::uint32_t lane, std::uint64_t messages) override { gone[lane] = messages; }

  HalfLane& add(std::uint32_t lane, LaneEnd end, std::uint32_t slot_bytes = kSlotBytes) {
    const LaneSpec spec = lane_spec(lane, slot_bytes);
    LaneMemory memory = std::move(carrier->allocate(HalfLane::memory_bytes(spec))).value();
    return halves.try_emplace(lane, 0, spec, end, HalfMemory{std::move(memory), nullptr}).first->second;
  }
  // Adds a half lane whose slots are in other memory that the carrier can access.
  HalfLane& add_apart(std::uint32_t lane, LaneEnd end, LaneMemory slots) {
    const HalfMemory memory = {HalfLane::allocate(HalfLane::kCounterBytes), std::move(slots)};
    return halves.try_emplace(lane, 0, lane_spec(lane), end, memory).first->second;
  }
  Status advance() { return carrier->advance(*this); }
  Result<bool> put(std::uint32_t lane, std::uint64_t number, std::uint32_t bytes) {
    MessageHead head;
    head.lane = lane;
    head.number = number;
    head.bytes = bytes;
    head.signature = static_cast<std::uint32_t>(lane * 1000 + number);
    return carrier->put(head, slot_of(halves.at(lane).view, number));
  }

  std::unique_ptr<Carrier> carrier;
  std::map<std::uint32_t, HalfLane> halves;
  std::function<void(const MessageHead&)> on_arrival;
  std::uint64_t arrivals = 0;
  std::map<std::uint32_t, std::uint64_t> credits, gone;
};

struct CarrierPair {
  CarrierPair(const std::vector<std::string>& ours, const std::vector<std::string>& theirs,
              const VerbsOptions& options = {})
      : CarrierPair(ours, theirs, options, options) {}
  CarrierPair(const std::vector<std::string>& ours, const std::vector<std::string>& theirs,
              const VerbsOptions& our_options, const VerbsOptions& their_options)
      : writer(ours, our_options), reader(theirs, their_options) {
    const Status there = writer.carrier->connect(reader.carrier->address());
    const Status back = reader.carrier->connect(writer.carrier->address());
    EXPECT_TRUE(there.ok() && back.ok()) << there.message() << back.message();
  }
  // Connects a lane from writer to reader.
  void connect(std::uint32_t lane, std::uint32_t slot_bytes = kSlotBytes) {
    auto landing = reader.carrier->register_reader(lane, reader.add(lane, LaneEnd::reader, slot_bytes));
    ASSERT_TRUE(landing.ok()) << std::move(landing).status().message();
    const Status attached =
        writer.carrier->attach(lane, writer.add(lane, LaneEnd::writer, slot_bytes), landing.value());
    ASSERT_TRUE(attached.ok()) << attached.message();
  }
  void advance() {
    for (CarrierEnd* end : {&writer, &reader}) {
      const Status advanced = end->advance();
      ASSERT_TRUE(advanced.ok()) << advanced.message();
    }
  }
  template <typename Done>
  void until(const Done& done) {
    const Deadline deadline = Deadline::after_ms(60'000);
    while (!done()) {
      ASSERT_FALSE(deadline.passed()) << "it hangs";
      ASSERT_NO_FATAL_FAILURE(advance());
    }
  }
  CarrierEnd writer, reader;
};

}  // namespace tutti::test
