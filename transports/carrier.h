// A carrier moves the messages of lanes between two ranks in place of their TCP connection: by RDMA verbs or UCX.
// The connection keeps everything else: which lanes exist, notes, and the check that the other rank still answers.
// A carrier handles slots and numbers; it knows no communicator.
//
// One end of a carrier. The connection calls it with its lock held, from one thread at a time. No function blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/device_block.h"
#include "transports/half_lane.h"

namespace tutti {

inline constexpr std::size_t kMaxCarrierBytes =
    2048;  // Maximum size of an address or a landing that one end sends to the other.

// A message without its data. Lanes are numbered by their writer, from 0, for each connection.
struct MessageHead {
  std::uint32_t lane = 0;
  std::uint32_t bytes = 0;
  std::uint64_t number = 0;  // In its lane.
  std::uint32_t signature = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(MessageHead) == 24);

// Events that a carrier reports to its connection. The connection checks all of them before it uses them.
class CarrierEvents {
 public:
  // The data lie in the message's slot of a lane that this end reads. The messages of a lane come in order.
  virtual Status arrived(const MessageHead& head) = 0;
  // The reader of a lane that this end writes has taken `taken` messages in all.
  virtual Status credited(std::uint32_t lane, std::uint64_t taken) = 0;
  // `messages` messages in all of a lane that this end writes need their slots no more. The carrier does not read
  // there again.
  virtual void left(std::uint32_t lane, std::uint64_t messages) = 0;

 protected:
  ~CarrierEvents() = default;
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  // "verbs": both ends must have the same.
  virtual std::string name() const = 0;
  // For messages: "verbs, mlx5_0 port 1 gid 3".
  virtual std::string describe() const = 0;

  // Address by which the other end reaches this one, at most kMaxCarrierBytes. It is sent over the authenticated
  // connection.
  virtual std::vector<std::byte> address() const = 0;
  // The other end's. Checked before it is used. Once it has returned well, what the other end puts will arrive, also
  // before the first advance().
  virtual Status connect(std::span<const std::byte> address) = 0;

  // Page-aligned, for halves of lanes; keeps alive what it needs of the carrier.
  virtual Result<LaneMemory> allocate(std::size_t bytes) = 0;
  // Memory of a device in which slots of halves may then lie as in what allocate() gives, though the host must not
  // touch them. Or why the carrier does not reach it.
  virtual Result<ReachedBlock> reach(const DeviceBlock& block) {
    return unsupported(name() + " does not reach memory of " + block.name);
  }
  // This end will read the lane: what its writer must know of it, kMaxCarrierBytes at most. After connect().
  virtual Result<std::vector<std::byte>> land(std::uint32_t lane, const HalfLane& reading) = 0;
  // This end writes the lane, and this is what its reader's land() returned.
  virtual Status attach(std::uint32_t lane, const HalfLane& writing, std::span<const std::byte> landing) = 0;
  // No more of this lane, whose number does not come again. Messages of it that come late are dropped.
  virtual void forget(std::uint32_t lane, LaneEnd end) = 0;

  // Begins to send a message that lies in its slot and stays there until left(). False: there is no room, later.
  virtual Result<bool> put(const MessageHead& head, const std::byte* data) = 0;
  // Tells the writer of a lane how much has been taken. False: there is no room, later.
  virtual Result<bool> credit(std::uint32_t lane, std::uint64_t taken) = 0;
  // True if everything that was put and credited proceeds without further calls. Messages after left() do.
  virtual bool passed_on() { return true; }
  // Takes in what has come and what has left. An error ends the connection: it names the device and what went wrong.
  virtual Status advance(CarrierEvents& events) = 0;
  // Whether it has messages that it tells of a little later, by itself.
  virtual bool holds_back() const { return false; }
  // Whether the other end has all that was sent: what is under way ends with the carrier.
  virtual bool acknowledged() const { return true; }

  // Becomes readable when there may be something to advance, once arm() has returned true.
  virtual int descriptor() const = 0;
  // False: there is something already.
  virtual bool arm() = 0;
};

// Makes this process's ends, with what they share: devices, registered memory. They keep it alive. Any thread.
class CarrierSource {
 public:
  virtual ~CarrierSource() = default;
  // For one connection.
  virtual Result<std::unique_ptr<Carrier>> make() = 0;
};

}  // namespace tutti
