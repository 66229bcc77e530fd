// Lanes between two ranks over RDMA. A small message is sent within the record that announces it. Other messages are
// written from the writer's slot into the reader's; large ones are split over all ports. If a port has several queue
// pairs, these take turns, so that a network with several paths uses more than one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/owned.h"
#include "src/base/socket.h"
#include "transports/carrier.h"
#include "transports/verbs/port_connection.h"
#include "transports/verbs/port_memory.h"
#include "transports/verbs/read_back.h"

namespace tutti {

class VerbsCarrier final : public Carrier, private PortConnectionEvents {
 public:
  // Creates a carrier with options.queue_pairs connections for each port.
  static Result<std::unique_ptr<Carrier>> create(const std::vector<VerbsPort>& ports, const VerbsOptions& options);

  std::string name() const override { return "verbs"; }
  std::string describe() const override;
  std::vector<std::byte> address() const override;
  Status connect(std::span<const std::byte> address) override;
  Result<LaneMemory> allocate(std::size_t bytes) override;
  Result<RegisteredRegion> register_device_memory(const DeviceRegion& region) override;
  bool supports_ll() const override { return true; }
  Result<std::vector<std::byte>> register_reader(std::uint32_t lane, const HalfLane& reading) override;
  Status attach(std::uint32_t lane, const HalfLane& writing, std::span<const std::byte> landing) override;
  void forget(std::uint32_t lane, LaneEnd end) override;
  Result<bool> put(const MessageHead& head, const std::byte* data) override;
  Result<bool> credit(std::uint32_t lane, std::uint64_t taken) override;
  Status advance(CarrierEvents& events) override;
  bool acknowledged() const override;
  bool defers_messages() const override { return !held_.empty(); }
  int descriptor() const override { return descriptor_.get(); }
  bool arm() override;

 private:
  // Slots of a half, in registered host memory or in a device region.
  struct Slots {
    std::shared_ptr<const PortMemory> memory;
    std::byte* at = nullptr;
    std::size_t bytes = 0;
    bool on_device() const { return memory->device_memory != nullptr; }
  };
  struct Writing {
    Slots slots;
    VerbsLanding landing;
    std::size_t max_eager = 0;                                   // Maximum bytes sent within a record.
    std::array<std::uint16_t, HalfLane::kSlots> in_flight = {};  // [k % kSlots]: unfinished writes of message k.
    std::uint64_t put = 0, left = 0;                             // Numbers of messages.
    bool reported = true;                                        // The connection knows `left`.
  };
  struct Arrival {
    MessageHead head;
    std::uint16_t parts = 0, came = 0;
  };
  struct Reading {
    Slots slots;
    LaneView view;
    std::array<Arrival, HalfLane::kSlots> arrivals;  // [k % kSlots]: arrival of message k.
    std::uint64_t next = 0;                          // First message that has not arrived.
  };
  // Message that has arrived, but is reported only after its data are read back.
  struct Held {
    MessageHead head;
    std::shared_ptr<const PortMemory> memory;
  };

  // Consecutive connections_, each of another port.
  struct Paths {
    std::size_t first = 0;
    std::size_t count = 1;
  };

  VerbsCarrier(const VerbsOptions& options, std::size_t ports) : options_(options), ports_(ports) {}
  std::size_t pairs() const { return connections_.size() / ports_; }
  std::size_t home(std::uint32_t lane) const { return lane % connections_.size(); }
  Paths paths_of(const Writing& lane, const MessageHead& head) const;
  std::vector<std::shared_ptr<VerbsDevice>> device_of_port() const;
  Result<Slots> registered(const HalfLane& half, RegionUse use) const;
  Status wait_for(int descriptor);
  Status prepare_read_back();
  PortConnection::Write part_of(const Writing& lane, const MessageHead& head, const std::byte* data, const Paths& paths,
                                std::size_t path) const;
  void leave(std::uint32_t number, Writing& lane);

  Status received(const VerbsRecord& record, std::span<const std::byte> data) override;
  Status received(const VerbsRecord& record, std::span<const std::byte> data, Reading& lane);
  void written(std::uint32_t lane, std::uint64_t number) override;
  Status notify(const MessageHead& head, const Reading& lane);
  Status read_back();

  VerbsOptions options_;
  std::size_t ports_;
  std::vector<std::unique_ptr<PortConnection>> connections_;  // Number p + k * ports_: queue pair k of port p.
  Socket descriptor_;                                         // epoll descriptor over those of all connections.
  std::unordered_map<std::uint32_t, Writing> writing_;
  std::unordered_map<std::uint32_t, Reading> reading_;
  std::uint32_t next_reading_ = 0;     // One more than the highest lane read so far; numbers are not reused.
  std::vector<std::uint32_t> unsent_;  // Lanes whose messages have left since the last report.
  CarrierEvents* events_ = nullptr;    // Set during advance().

  std::vector<std::weak_ptr<const PortMemory>> regions_;
  std::unique_ptr<ReadBack> read_back_;  // Null until a region needs it.
  std::deque<Held> held_;
  std::size_t reading_back_ = 0;  // Number of held messages, from the first, that are being read back.
};

}  // namespace tutti
