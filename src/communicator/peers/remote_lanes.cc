#include "src/communicator/peers/remote_lanes.h"

#include <utility>

#include "src/base/pages.h"
#include "src/communicator/peers/direct_slots.h"

namespace tutti {

Result<std::unique_ptr<RemoteLanes>> RemoteLanes::make(std::shared_ptr<Device> device, TcpConnection& connection,
                                                       const RemoteLanesOptions& options) {
  std::unique_ptr<RemoteLanes> made(new RemoteLanes(std::move(device), connection, options.context));
  TUTTI_CHECK_OK(made->place_slots(options));
  return made;
}

// Places the slots of both directions: in device memory if the carrier can access it, else in host memory, without
// those of LL.
Status RemoteLanes::place_slots(const RemoteLanesOptions& options) {
  const GpuDirect wanted = options.gpudirect;
  const LaneBudget& budget = options.budget;
  const bool ll = connection_->supports_ll();
  const std::size_t ll_bytes = ll ? 2 * budget.remote_ll_bytes(options.peer) : 0;
  const std::size_t ll_slots_bytes = ll ? 2 * budget.remote_ll_slots_bytes(options.peer) : 0;
  const std::size_t slots_bytes = 2 * budget.remote_slots_bytes(options.peer) + ll_slots_bytes;
  Result<RegisteredRegion> reached =
      take_direct_slots(device_, {slots_bytes, wanted},
                        [this](const DeviceRegion& slots) { return connection_->register_device_memory(slots); });
  LaneRegion region;
  region.bytes = round_up(2 * budget.remote_bytes(options.peer), mapped_page_bytes());
  direct_ = reached.ok();
  if (direct_) {
    region.holds_ll = holds_ll_ = ll;
    how_ = reached.value().how;
    region.slots = std::move(reached.value().memory);
    region.slots_bytes = slots_bytes;
    region.bytes = round_up(region.bytes + ll_bytes - slots_bytes, mapped_page_bytes());
    region.memory = TUTTI_TRY(HalfLane::allocate_shared(region.bytes));
  } else {
    const std::string why = std::move(reached).status().message();
    if (wanted == GpuDirect::on)
      return unsupported("TUTTI_GPUDIRECT is on, and slots cannot lie on the device: " + why);
    how_ = "memory of the host (" + why + ")";
    region.memory = TUTTI_TRY(connection_->allocate(region.bytes));
  }
  memory_ = region.memory;
  mapped_ = TUTTI_TRY(device_->map_host(memory_.get(), region.bytes));
  connection_->attach_memory(context_, std::move(region));
  return {};
}

// The connection owns the memory, to which it may still write.
void RemoteLanes::close() {
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->close(context_);
}

RemoteLanes::~RemoteLanes() {
  close();
  if (mapped_.host != nullptr) device_->unmap_host(mapped_);
}

Result<LanePair> RemoteLanes::lane(const LaneSpec& spec, LaneEnd end) {
  LanePair pair;
  pair.forward = TUTTI_TRY(connection_->open(context_, spec, end));
  if (!direct_) pair.forward.slots = as_mapped(pair.forward.slots);
  pair.forward.words = as_mapped(pair.forward.words);
  pair.forward.credits = as_mapped(pair.forward.credits);
  return pair;
}

}  // namespace tutti
