// Lanes between this rank and a rank of another host. Each end has a half of each lane in host memory that its device
// maps. If the carrier can access device memory, the slots are there instead. The connection moves data between the
// halves while it is advanced.
#pragma once

#include <memory>
#include <string>

#include "src/base/config.h"
#include "src/communicator/peers/lane_budget.h"
#include "src/executor/thread_block/device.h"
#include "transports/tcp/connection.h"
#include "transports/transport.h"

namespace tutti {

struct RemoteLanesOptions {
  std::uint32_t context = 0;  // Context of the lanes on their connection.
  LaneBudget budget;
  RemotePeers peer = RemotePeers::all;  // The rank at the other end.
  GpuDirect gpudirect = GpuDirect::automatic;
};

// Lanes of one rank to other hosts. One thread at a time. The destructor waits for the device, as
// Device::unmap_host() may.
class RemoteLanes {
 public:
  // `connection` must outlive the lanes. Call this before the other end opens any lane.
  static Result<std::unique_ptr<RemoteLanes>> make(std::shared_ptr<Device> device, TcpConnection& connection,
                                                   const RemoteLanesOptions& options);
  ~RemoteLanes();
  RemoteLanes(const RemoteLanes&) = delete;
  RemoteLanes& operator=(const RemoteLanes&) = delete;

  // Closes the lanes. Neither the lanes nor the connection are used afterwards.
  void close();

  // Returns a lane with the addresses that the device uses.
  Result<LanePair> lane(const LaneSpec& spec, LaneEnd end);

  TcpConnection& connection() const { return *connection_; }
  // Describes where slots are, for the log: "mlx5_0 by dma-buf", or "memory of the host (...)" with the reason.
  const std::string& how() const { return how_; }
  // True if lanes may use LL: slots are in device memory, and the carrier supports LL.
  bool holds_ll() const { return holds_ll_; }
  // True if all posted data proceeds without further calls. Sends what it can.
  bool drained() const { return connection_->drained(context_); }

 private:
  RemoteLanes(std::shared_ptr<Device> device, TcpConnection& connection, std::uint32_t context)
      : device_(std::move(device)), connection_(&connection), context_(context) {}
  Status place_slots(const RemoteLanesOptions& options);
  template <typename Item>
  Item* as_mapped(Item* item) const {
    return reinterpret_cast<Item*>(mapped_.device + (reinterpret_cast<std::byte*>(item) - mapped_.host));
  }

  const std::shared_ptr<Device> device_;
  TcpConnection* connection_;  // Null: closed.
  const std::uint32_t context_;
  std::string how_;
  bool direct_ = false;  // Slots are in device memory.
  bool holds_ll_ = false;
  LaneMemory memory_;
  HostMemory mapped_;
};

}  // namespace tutti
