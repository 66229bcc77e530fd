#include "src/communicator/neighbours/far_lanes.h"

#include <utility>

#include "src/base/pages.h"

namespace tutti {

Result<std::unique_ptr<FarLanes>> FarLanes::make(std::shared_ptr<Device> device, TcpConnection& connection,
                                                 std::uint32_t context, std::size_t bytes) {
  std::unique_ptr<FarLanes> made(new FarLanes(std::move(device), connection, context));
  const std::size_t both = round_up(2 * bytes, mapped_page_bytes());
  made->memory_ = TUTTI_TRY(connection.allocate(both));
  made->mapped_ = TUTTI_TRY(made->device_->map_host(made->memory_.get(), both));
  connection.lend(context, made->memory_, both);
  return made;
}

// What the connection still brings there it keeps alive itself.
void FarLanes::close() {
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->close(context_);
}

FarLanes::~FarLanes() {
  close();
  if (mapped_.host != nullptr) device_->unmap_host(mapped_);
}

Result<LanePair> FarLanes::lane(const LaneSpec& spec, LaneEnd end) {
  LanePair pair;
  pair.forward = TUTTI_TRY(connection_->open(context_, spec, end));
  pair.forward.slots = as_mapped(pair.forward.slots);
  pair.forward.words = as_mapped(pair.forward.words);
  pair.forward.credits = as_mapped(pair.forward.credits);
  return pair;
}

}  // namespace tutti
