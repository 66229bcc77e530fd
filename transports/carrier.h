// A carrier moves the messages of lanes between two ranks in place of their TCP connection: by RDMA verbs, UCX or a
// network plugin of NCCL. The connection keeps everything else: which lanes exist, notes, and the check that the other
// rank still answers.
// A carrier handles slots and numbers, independent of communicators.
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
#include "transports/device_region.h"
#include "transports/half_lane.h"

namespace tutti {

// Maximum size of an address or a landing that one end sends to the other.
inline constexpr std::size_t kMaxCarrierBytes = 2048;

// Header of a message. Lanes are numbered by their writer, from 0, for each connection.
struct MessageHead {
  std::uint32_t lane = 0;
  std::uint32_t bytes = 0;
  std::uint64_t number = 0;  // Number of the message in its lane, from 0.
  std::uint32_t signature = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(MessageHead) == 24);

// Events that a carrier reports to its connection. The connection checks all of them before it uses them.
class CarrierEvents {
 public:
  // The data of a message are in its slot of a lane that this end reads. Messages of a lane arrive in order.
  virtual Status arrived(const MessageHead& head) = 0;
  // The reader of a lane that this end writes has consumed its first `taken` messages.
  virtual Status credited(std::uint32_t lane, std::uint64_t taken) = 0;
  // The first `messages` messages of a lane that this end writes have left their slots, which the carrier does not read
  // again.
  virtual void left(std::uint32_t lane, std::uint64_t messages) = 0;

 protected:
  ~CarrierEvents() = default;
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  // Returns the kind, such as "verbs". Both ends must have the same.
  virtual std::string name() const = 0;
  // Returns a description for error messages: "verbs, mlx5_0 port 1 gid 3".
  virtual std::string describe() const = 0;

  // Returns the address that the other end passes to connect(), at most kMaxCarrierBytes. The caller sends it over the
  // authenticated connection.
  virtual std::vector<std::byte> address() const = 0;
  // Connects to the other end, whose address is checked first. After success, everything that the other end sends will
  // arrive, even if it is sent before the first advance().
  virtual Status connect(std::span<const std::byte> address) = 0;

  // Allocates page-aligned memory for halves of lanes. The memory keeps the parts of the carrier alive that it needs.
  virtual Result<LaneMemory> allocate(std::size_t bytes) = 0;
  // Registers device memory, so that slots of lanes may be there; the host must not access them. Fails, with the
  // reason, if the carrier cannot access the memory.
  virtual Result<RegisteredRegion> register_device_memory(const DeviceRegion& region) {
    return unsupported(name() + " does not reach memory of " + region.name);
  }
  // True if slots in device memory may be those of LL: messages are stored there in units of 8 aligned bytes.
  virtual bool supports_ll() const { return false; }
  // Registers a lane that this end reads. Returns the data that its writer passes to attach(), at most
  // kMaxCarrierBytes. Call it after connect().
  virtual Result<std::vector<std::byte>> register_reader(std::uint32_t lane, const HalfLane& reading) = 0;
  // Registers a lane that this end writes. `landing`: result of the reader's register_reader().
  virtual Status attach(std::uint32_t lane, const HalfLane& writing, std::span<const std::byte> landing) = 0;
  // Unregisters a lane. Its number is not used again, and its later messages are dropped.
  virtual void forget(std::uint32_t lane, LaneEnd end) = 0;

  // Starts sending a message whose data remain in their slot until left(). Returns false if there is no room; retry
  // later.
  virtual Result<bool> put(const MessageHead& head, const std::byte* data) = 0;
  // Reports to the writer of a lane how many messages were consumed. Returns false if there is no room; retry later.
  virtual Result<bool> credit(std::uint32_t lane, std::uint64_t taken) = 0;
  // True if everything that was put and credited proceeds without further calls. Always true of messages after left().
  virtual bool flushed() { return true; }
  // Processes arrivals and completions. An error ends the connection; it names the device and the cause.
  virtual Status advance(CarrierEvents& events) = 0;
  // True while received messages await a GPUDirect flush; advance() reports them later.
  virtual bool defers_messages() const { return false; }
  // True if the other end has received everything. Unacknowledged data are lost when the carrier is destroyed.
  virtual bool acknowledged() const { return true; }
  // Announces that this end puts nothing more. Call it between calls of advance(), until it returns true: then the
  // carrier may be destroyed.
  virtual bool finish() { return acknowledged(); }
  // True while this end can receive messages and the other end has not announced that it puts nothing more. Carriers
  // without such announcements return false. advance() may deliver messages although it fails because this end can no
  // longer send.
  virtual bool expects_messages() const { return false; }

  // Descriptor that becomes readable when advance() has work, provided that arm() returned true.
  virtual int descriptor() const = 0;
  // Arms descriptor(). Returns false if advance() has work already.
  virtual bool arm() = 0;
};

// Creates the carriers of this process. They share devices and registered memory, and keep these alive. Thread-safe.
class CarrierSource {
 public:
  virtual ~CarrierSource() = default;
  // Creates a carrier for one connection.
  virtual Result<std::unique_ptr<Carrier>> make() = 0;
};

}  // namespace tutti
