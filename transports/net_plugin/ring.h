// One direction of a connection: the plugin's connection, registered memory for frames, and the requests in flight.
// All functions require the engine's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/status.h"
#include "transports/half_lane.h"
#include "transports/net_plugin/engine.h"
#include "transports/net_plugin/frame.h"

namespace tutti {

class NetRing {
 public:
  enum class Direction : std::uint8_t { sending, receiving };

  // `where`: describes the device in errors.
  NetRing(NetEngine& engine, Direction direction, std::string where)
      : engine_(engine), direction_(direction), where_(std::move(where)) {}
  ~NetRing() { close(); }
  NetRing(const NetRing&) = delete;
  NetRing& operator=(const NetRing&) = delete;

  // Owns the plugin's connection from here on, also after an error. Registers memory for kNetFrames frames.
  Status open(void* connection);
  bool is_open() const { return memory_ != nullptr; }

  // Frames are numbered from 0. Frame n uses the memory of frame n - kNetFrames.
  std::byte* frame(std::uint64_t number) const { return memory_.get() + number % kNetFrames * kNetFrameBytes; }
  std::uint64_t begun() const { return begun_; }
  std::uint64_t done() const { return done_; }
  bool idle() const { return begun_ == done_; }
  bool full() const { return begun_ - done_ == kNetFrames; }
  // Begins to send or receive frame begun(). Returns false if the plugin has no room; retry later.
  Result<bool> begin(std::size_t bytes);
  // Returns true and counts frame done() as done if its request is complete. `bytes`: size as reported by the plugin.
  Result<bool> test(int& bytes);

 private:
  void close();

  NetEngine& engine_;
  Direction direction_;
  std::string where_;
  void* connection_ = nullptr;
  LaneMemory memory_;  // Null until it is registered.
  void* registration_ = nullptr;
  std::array<void*, kNetFrames> requests_{};
  std::uint64_t begun_ = 0, done_ = 0;
};

}  // namespace tutti
