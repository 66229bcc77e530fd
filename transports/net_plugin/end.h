// One end of a connection between two ranks over a network plugin: a sending and a receiving connection of the plugin.
// They are made when the first lane needs them, and carry frames, which are copied from and to the slots of lanes. So
// the plugin accesses no memory of lanes. All functions require the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/base/status.h"
#include "transports/carrier.h"
#include "transports/net_plugin/engine.h"
#include "transports/net_plugin/frame.h"
#include "transports/net_plugin/ring.h"

namespace tutti {

class NetEnd {
 public:
  static Result<std::unique_ptr<NetEnd>> make(NetEngine& engine);
  ~NetEnd();
  NetEnd(const NetEnd&) = delete;
  NetEnd& operator=(const NetEnd&) = delete;

  std::string describe() const { return "net_plugin, " + engine_.plugin().description() + where_; }
  std::vector<std::byte> address() const;
  Status connect(std::span<const std::byte> address);

  void register_reader(std::uint32_t lane, const HalfLane& reading);
  void attach(std::uint32_t lane, const HalfLane& writing);
  // Returns memory that the caller frees without the lock.
  LaneMemory forget(std::uint32_t lane, LaneEnd which);

  bool put(const MessageHead& head, const std::byte* data);
  void credit(std::uint32_t lane, std::uint64_t taken);
  Status advance(CarrierEvents& events);
  bool flushed() const;
  bool acknowledged() const { return !connected() || sent_all(); }
  bool finish();
  bool expects_messages() const { return connected() && !peer_left_ && receive_error_.empty(); }

  int descriptor() const { return timer_.get(); }
  bool arm();

 private:
  struct Message {  // Being sent.
    MessageHead head;
    const std::byte* data = nullptr;
    std::uint32_t sent = 0;
  };
  struct Reading {
    LaneMemory memory;
    LaneView view;
    std::uint64_t next = 0;      // Number of the next message.
    std::uint32_t received = 0;  // Bytes of this message that have arrived.
  };

  NetEnd(NetEngine& engine, NetEngine::Device& device);
  bool connected() const { return sending_.is_open() && receiving_.is_open(); }
  bool sent_all() const;
  Status begin();
  Status make_connections();
  Status make_sending();
  Status make_receiving();
  Status receive_frames(CarrierEvents& events);
  Status post_receives();
  Status handle_frame(const std::byte* frame, int bytes, CarrierEvents& events);
  Status handle_part(const NetFrameHead& head, const std::byte* part, CarrierEvents& events);
  Status send_frames();
  std::size_t fill_frame();

  NetEngine& engine_;
  NetEngine::Device& device_;
  std::string where_;  // " on device 0 (eth0)", for errors.
  NetAddress own_, peer_;
  void* listening_ = nullptr;
  bool begun_ = false;
  NetRing sending_, receiving_;
  std::string send_error_, receive_error_;

  std::map<std::uint32_t, Reading> reading_;
  std::map<std::uint32_t, LaneMemory> writing_;
  std::uint32_t next_reading_ = 0;  // Lanes below this number that are not in the map were forgotten.
  std::optional<Message> message_;
  std::map<std::uint32_t, std::uint64_t> credits_;             // Not sent yet, by lane.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> left_;  // Not reported yet: lane, messages.
  std::size_t filled_bytes_ = 0;                               // Size of a frame for which the plugin had no room.

  bool leaving_ = false, peer_left_ = false;
  std::uint32_t goodbyes_ = 0;  // Frames that say goodbye, sent so far.
  Deadline leave_deadline_;

  File timer_;
  bool moved_ = false;  // A frame was sent or received since the last arm().
  std::int64_t sleep_ns_ = 0;
};

}  // namespace tutti
