// State of the connections between ranks during a simulation: lanes with their messages and slots, and links.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/simulator/engine.h"
#include "tools/simulator/event_queue.h"

namespace tutti::simulator {

inline constexpr std::uint32_t kNone = ~0U;
inline constexpr std::uint32_t kMessageBit = 1U
                                             << 31;  // Marks the subject of an event as a message; else it is a rank.

// Clock, event queue and random numbers.
struct Timeline {
  double now = 0;
  EventQueue queue;
  double jitter = 0;
  std::uint64_t random = 1;

  Timeline(double mean, std::uint64_t seed) : jitter(mean), random(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  void wake(std::uint32_t rank, double us) { queue.push({us < now ? now : us, 0, rank}); }
  double jittered(double us);
};

class SimulatedLanes {
 public:
  SimulatedLanes(const Program& program, const Network& network, const EngineRequest& request, Timeline& timeline);

  // Time at which the rank can continue. next() waits for the next message or signal of a lane, slot() for a free slot.
  // If the time is unknown, the rank is woken when it is known.
  struct Promise {
    bool known = true;
    double us = 0;
    const Chain* chain = nullptr;  // Chain of a message, valid until the next call.
  };
  Promise next(std::uint32_t lane, std::uint32_t rank);
  Promise slot(std::uint32_t lane, std::uint32_t rank);

  // Removes the next message or signal of a lane, for a step that ends at end_us.
  void take(const End& end, double end_us);
  // Sends a message or signal from a step that begins now and ends at end_us. `chain` leads to the begin of the step. A
  // signal leaves after stored_us, when the rank's writes to peers' memory have arrived.
  // Returns the time at which the message has passed the sender's links.
  double send(std::uint32_t lane, double bytes, double end_us, const Chain& chain);
  void signal(std::uint32_t lane, double end_us, double stored_us, const Chain& chain);
  // Returns the time at which the last byte has passed the last link.
  double transfer(std::uint32_t lane, double bytes);
  // Like transfer(), for data that switches reduce (gather) or distribute (spread). Each source leaves its rank once,
  // and the reader receives only the sum. The writer sends its data once, and the switches deliver it to all targets.
  double gather(std::span<const End> sources, double bytes);
  double spread(std::span<const End> targets, double bytes);
  double latency_us(std::uint32_t lane) const { return lanes_[lane].latency_us; }
  LinkKind narrowest(std::uint32_t lane) const { return narrowest(lanes_[lane]); }

  void enter_receiver(std::uint32_t message);

  bool reader_waits(std::uint32_t lane, std::uint32_t rank) const { return lanes_[lane].reader == rank; }
  std::vector<LinkUse> uses() const;
  double data_bytes() const { return data_bytes_; }
  // These functions prefetch data into the cache: a message, its lane and links once the message is cached, and the
  // data that a step needs.
  void prefetch(std::uint32_t message) const {
    __builtin_prefetch(&messages_[message]);
    __builtin_prefetch(&messages_[message].lane);
  }
  void prefetch_lane_of(std::uint32_t message) const { prefetch_lane(messages_[message].lane); }
  void prefetch_links_of(std::uint32_t message) const;
  void prefetch_lane(std::uint32_t lane) const { __builtin_prefetch(&lanes_[lane]); }
  void prefetch_next(const End& end) const;

 private:
  static constexpr std::size_t kMaxLinks = 6;

  struct alignas(64) Lane {
    std::uint32_t head = kNone, tail = kNone;
    std::uint32_t sent = 0, taken = 0;
    std::uint32_t reader = kNone, writer = kNone;  // Waiting ranks.
    double last_arrival_us = 0;
    float latency_us = 0;
    std::uint8_t links_class = 0;
    std::uint8_t own = 0, others = 0;  // Number of links on the sender's side, and of links shared with other senders.
    std::array<std::uint32_t, kMaxLinks> links{};
  };
  static_assert(sizeof(Lane) == 64);

  struct alignas(32) Message {
    double arrival_us = 0;  // Negative: not known yet.
    double begun_us = 0, sent_us = 0, finish_us = 0;
    Chain chain;      // Chain up to the arrival.
    float bytes = 0;  // Bytes on the link, with overhead of the protocol.
    float queued_us = 0;
    std::uint32_t lane = 0;
    std::uint32_t next = kNone;  // Next message of its lane, or next free one.
  };

  struct alignas(32) LinkState {
    double free_us = 0;
    float us_per_byte = 0;
    float message_us = 0;  // Minimum time of a message.
    double bytes = 0;
    std::uint32_t parallel = 1;  // Number of parallel links.
    std::uint32_t first = 0;     // Parallel links: index of the times at which each is free.
  };
  static_assert(sizeof(LinkState) == 32);

  double multicast_part() const;  // Fraction of a link's rate for multicast.
  void lay_link(ResourceId id);
  void limit_ports();
  void lay_lanes();
  void join_links();
  double& free_of(LinkState& link);
  double occupy(ResourceId id, double at, double bytes, double& finish);
  double pass(const Lane& lane, std::size_t first, std::size_t end, const std::array<double, 2>& at_and_bytes,
              double& finish);
  std::uint32_t new_message(std::uint32_t lane);
  void arrive(std::uint32_t message);
  void wake_reader(Lane& lane, std::uint32_t message);
  double signal_us(const Lane& lane) const {
    const Costs& costs = request_.costs;
    return lane.latency_us + costs.hop_us[lane.links_class][static_cast<std::size_t>(Protocol::ll)];
  }
  LinkKind narrowest(const Lane& lane) const;

  const Program& program_;
  const Network& network_;
  const EngineRequest& request_;
  Timeline& timeline_;
  const std::size_t protocol_;
  std::vector<Lane> lanes_;
  std::vector<LinkState> links_;
  std::vector<ResourceId> joined_to_;  // [resource]: link that carries the same messages and accounts for them.
  std::vector<double> side_by_side_;
  std::vector<Message> messages_;
  std::vector<double> slot_free_;  // [lane * slots + slot]: time at which the reader freed the slot.
  std::uint32_t free_message_ = kNone;
  double data_bytes_ = 0;
};

}  // namespace tutti::simulator
