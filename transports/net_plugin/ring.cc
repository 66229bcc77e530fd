#include "transports/net_plugin/ring.h"

#include <mutex>
#include <utility>
#include <vector>

#include "src/base/log.h"

namespace tutti {

Status NetRing::open(void* connection) {
  const NetPlugin& plugin = engine_.plugin();
  connection_ = connection;
  const std::size_t bytes = kNetFrames * kNetFrameBytes;
  LaneMemory memory = TUTTI_TRY(HalfLane::allocate_shared(bytes));
  const nccl_net::Code code =
      plugin.table().register_memory(connection_, memory.get(), bytes, nccl_net::kHostMemory, &registration_);
  if (code != nccl_net::kSuccess)
    return plugin.error("regMr", code, " of " + std::to_string(bytes) + " bytes" + where_);
  memory_ = std::move(memory);
  return {};
}

// Memory is unmapped only after the plugin has released it. It is kept for ever if the plugin does not.
void NetRing::close() {
  const NetPlugin& plugin = engine_.plugin();
  if (!engine_.of_this_process()) return;
  const nccl_net::Plugin& table = plugin.table();
  bool released = true;
  const auto check = [&](const char* function, nccl_net::Code code) {
    if (code == nccl_net::kSuccess) return;
    released = false;
    // Peers that leave without notice leave requests behind, which some plugins reject.
    log(idle() ? LogLevel::warn : LogLevel::info, "%s", plugin.error(function, code, where_).message().c_str());
  };
  if (memory_ != nullptr) check("deregMr", table.deregister_memory(connection_, registration_));
  if (connection_ != nullptr) {
    if (direction_ == Direction::sending) {
      check("closeSend", table.close_sending(connection_));
    } else {
      check("closeRecv", table.close_receiving(connection_));
    }
  }
  if (released || memory_ == nullptr) return;
  static auto& kept = *new std::pair<std::mutex, std::vector<LaneMemory>>;
  const std::lock_guard lock(kept.first);
  kept.second.push_back(std::move(memory_));
}

Result<bool> NetRing::begin(std::size_t bytes) {
  TUTTI_ASSERT(is_open() && !full());
  const NetPlugin& plugin = engine_.plugin();
  void*& request = requests_[begun_ % kNetFrames];
  request = nullptr;
  const bool sends = direction_ == Direction::sending;
  const nccl_net::Code code = sends ? plugin.send(connection_, frame(begun_), bytes, registration_, &request)
                                    : plugin.receive(connection_, frame(begun_), bytes, registration_, &request);
  if (code != nccl_net::kSuccess) return plugin.error(sends ? "isend" : "irecv", code, where_);
  if (request == nullptr) return false;
  ++begun_;
  return true;
}

Result<bool> NetRing::test(int& bytes) {
  TUTTI_ASSERT(!idle());
  int done = 0;
  const nccl_net::Code code = engine_.plugin().table().test(requests_[done_ % kNetFrames], &done, &bytes);
  if (code != nccl_net::kSuccess)
    return engine_.plugin().error(direction_ == Direction::sending ? "test of isend" : "test of irecv", code, where_);
  if (done == 0) return false;
  ++done_;
  return true;
}

}  // namespace tutti
