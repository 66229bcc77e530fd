// The multicast object of the ranks of a host, to which all bind their staging rings.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/communicator/peers/gather.h"
#include "src/communicator/peers/peer_set.h"

namespace tutti {
namespace {

// Result of a step on one rank.
struct Outcome {
  char error[252] = {};  // Empty: it succeeded.
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Outcome) == 256);

Outcome outcome_of(const Status& status) {
  Outcome outcome;
  if (!status.ok()) std::strncpy(outcome.error, status.message().c_str(), sizeof outcome.error - 1);
  return outcome;
}

}  // namespace

// Rank 0 creates the object and passes its file. Each rank adds its device. When all have, each binds its memory. A
// rank that fails still takes part in the next exchange, after which all ranks give up.
Status PeerSet::bind_multicast(const std::vector<Communicator*>& members, Set& set) {
  std::vector<std::unique_ptr<DeviceMulticast>> objects(set.size());
  std::vector<std::byte*> addresses(set.size());
  const auto create = [&](std::size_t i) -> Status {
    if (set[i].self_ != 0) return {};
    RankDeviceMemory& own = set[i].own_memory();
    if (own.exported_lanes() == nullptr) return unsupported("there is no memory for the ring");
    objects[i] = TUTTI_TRY(own.device().create_multicast(own.exported_lanes(), set[i].ranks()));
    const File file = TUTTI_TRY(objects[i]->file());
    for (Rank peer = 1; peer < set[i].ranks(); ++peer) TUTTI_CHECK_OK(members[i]->pass(peer, file.get()));
    return {};
  };
  const auto open = [&](std::size_t i) -> Status {
    if (set[i].self_ == 0) return {};
    const File file = TUTTI_TRY(members[i]->take_passed(0));
    RankDeviceMemory& own = set[i].own_memory();
    if (own.exported_lanes() == nullptr) return unsupported("there is no memory for the ring");
    objects[i] = TUTTI_TRY(own.device().open_multicast(own.exported_lanes(), file));
    return {};
  };
  const auto bind = [&](std::size_t i) -> Status {
    RankDeviceMemory& own = set[i].own_memory();
    addresses[i] = TUTTI_TRY(own.device().bind(*objects[i], own.exported_lanes()));
    return {};
  };
  const std::function<Status(std::size_t)> steps[] = {create, open, bind};
  for (const auto& step : steps) {
    std::vector<std::vector<Outcome>> own;
    for (std::size_t i = 0; i < set.size(); ++i) own.push_back({outcome_of(step(i))});
    const auto all = TUTTI_TRY(gather(members, own));
    for (Rank rank = 0; rank < all[0].size(); ++rank) {
      if (all[0][rank].error[0] == 0) continue;
      if (std::ranges::any_of(set, [](const PeerSet& member) { return member.self_ == 0; }))
        log(LogLevel::warn, "sums do not use the switches between the GPUs, because of rank %u: %s", rank,
            all[0][rank].error);
      return {};
    }
  }
  for (std::size_t i = 0; i < set.size(); ++i)
    set[i].multicast_ring_ = set[i].own_memory().keep_multicast(std::move(objects[i]), addresses[i]);
  return {};
}

}  // namespace tutti
