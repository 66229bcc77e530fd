// Both ends of lanes between two ranks, over any transport. One or two threads run them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/executor/lane_io.h"
#include "transports/carrier.h"
#include "transports/tcp/connection.h"
#include "transports/transport.h"

namespace tutti::test {

inline constexpr Signature kSignature = {0x5eed};
inline constexpr int kTimeoutMs = 60'000;  // A hang becomes a failure.

class Ends {
 public:
  virtual ~Ends() = default;
  virtual LaneView open(int end, const LaneSpec& spec, LaneEnd which, std::uint32_t context) = 0;
  virtual void advance(int end) = 0;
  // Sleeps until there may be work for advance().
  virtual void wait(int end, int timeout_ms) = 0;
  // Returns true if all messages that this end has posted need no further calls of advance().
  virtual bool drained(int end) = 0;

  // Return the lane's state at the end that the spec names as writer or reader.
  LaneState writing(const LaneSpec& spec, std::uint32_t context = 0) {
    return {.view = open(static_cast<int>(spec.writer), spec, LaneEnd::writer, context)};
  }
  LaneState reading(const LaneSpec& spec, std::uint32_t context = 0) {
    return {.view = open(static_cast<int>(spec.reader), spec, LaneEnd::reader, context)};
  }
  template <typename Done>
  void until(const Done& done) {
    const Deadline deadline = Deadline::after_ms(kTimeoutMs);
    while (!done()) {
      ASSERT_FALSE(deadline.passed()) << "it hangs" << why();
      advance(0);
      advance(1);
    }
  }
  virtual std::string why() { return ""; }
};

// The ends of a TCP connection, optionally with a carrier.
struct Connections : Ends {
  // Both carriers, if any, are created by `from`.
  explicit Connections(std::unique_ptr<CarrierSource> from = nullptr, const Seal& seal = {}, bool required = true,
                       const std::string& instead = "");
  LaneView open(int end, const LaneSpec& spec, LaneEnd which, std::uint32_t context) override;
  void advance(int end) override;
  void wait(int end, int timeout_ms) override { ends[end]->wait(timeout_ms); }
  bool drained(int end) override { return ends[end]->drained(0); }
  std::string why() override;

  std::unique_ptr<CarrierSource> source;
  std::unique_ptr<TcpConnection> ends[2];  // Null after the end of a connection.
};

struct Tested {
  const char* name;
  // Returns the source of carriers. Fails if the machine does not support them.
  Result<std::unique_ptr<CarrierSource>> (*open)();
  bool sealed = false;
};

// Returns all kinds of connections. The first is "tcp", which has no carrier.
const std::vector<Tested>& connections_tested();

// Returns lanes in shared memory with both ends in this process.
std::unique_ptr<Ends> shared_memory();

inline LaneSpec lane_of(std::uint16_t tag, std::uint32_t slot_bytes = 64 << 10) {
  LaneSpec lane;
  lane.writer = 0;
  lane.reader = 1;
  lane.tag = tag;
  lane.slot_bytes = slot_bytes;
  lane.slot_shift = 3;
  return lane;
}
// Returns the lane in the opposite direction.
inline LaneSpec back(LaneSpec lane) {
  std::swap(lane.writer, lane.reader);
  return lane;
}

std::vector<std::byte> message_of(std::uint64_t number, std::size_t bytes);
void post(LaneState& lane, const std::vector<std::byte>& message);
// Receives the next message. Returns true if it equals `message`.
bool next_is(LaneState& lane, const std::vector<std::byte>& message);

}  // namespace tutti::test
