// Lanes between this rank and one of another host. Each end has a half of each lane in memory of its host, which its
// device maps, or has its slots in memory of its device, where the carrier reaches that; their connection carries what
// goes from one half to the other, as far as somebody runs it.
#pragma once

#include <memory>
#include <string>

#include "src/base/config.h"
#include "src/communicator/peers/lane_budget.h"
#include "src/executor/thread_block/device.h"
#include "transports/tcp/connection.h"
#include "transports/transport.h"

namespace tutti {

struct RemotePlace {
  std::uint32_t context = 0;  // Context of the lanes on their connection.
  LaneBudget budget;
  GpuDirect gpudirect = GpuDirect::automatic;
};

// Lanes of one rank to other hosts. One thread at a time. The destructor waits for the device, as
// Device::unmap_host() may.
class RemoteLanes {
 public:
  // The connection outlives them. Before the other end opens any.
  static Result<std::unique_ptr<RemoteLanes>> make(std::shared_ptr<Device> device, TcpConnection& connection,
                                                   const RemotePlace& place);
  ~RemoteLanes();
  RemoteLanes(const RemoteLanes&) = delete;
  RemoteLanes& operator=(const RemoteLanes&) = delete;

  // No lane is used any more, nor the connection.
  void close();

  // As the device sees it.
  Result<LanePair> lane(const LaneSpec& spec, LaneEnd end);

  TcpConnection& connection() const { return *connection_; }
  // For people, where slots lie: "mlx5_0 by dma-buf", or "memory of the host (...)" and why.
  const std::string& how() const { return how_; }
  // Whether all that was posted goes on by itself; it carries what it can.
  bool drained() const { return connection_->drained(context_); }

 private:
  RemoteLanes(std::shared_ptr<Device> device, TcpConnection& connection, std::uint32_t context)
      : device_(std::move(device)), connection_(&connection), context_(context) {}
  Status place_slots(const LaneBudget& budget, GpuDirect wanted);
  template <typename Item>
  Item* as_mapped(Item* item) const {
    return reinterpret_cast<Item*>(mapped_.device + (reinterpret_cast<std::byte*>(item) - mapped_.host));
  }

  const std::shared_ptr<Device> device_;
  TcpConnection* connection_;  // Null: closed.
  const std::uint32_t context_;
  std::string how_;
  bool direct_ = false;  // Slots lie on the device.
  LaneMemory memory_;
  HostMemory mapped_;
};

}  // namespace tutti
