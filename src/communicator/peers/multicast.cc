#include "src/communicator/peers/multicast.h"

#include <cstring>
#include <functional>
#include <utility>

#include "src/base/caught.h"
#include "src/base/log.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/peers/deferred_frees.h"
#include "src/communicator/peers/gather.h"

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

// Objects of this thread's ranks until all ranks have bound their memory. If they do not, some may be bound already.
struct UnfinishedObjects {
  explicit UnfinishedObjects(std::size_t members) : bound(members) {}
  ~UnfinishedObjects() {
    for (BoundMulticast& each : bound) {
      if (each.object != nullptr) destroy_when_idle(std::move(each.object));
    }
  }
  UnfinishedObjects(const UnfinishedObjects&) = delete;
  UnfinishedObjects& operator=(const UnfinishedObjects&) = delete;

  std::vector<BoundMulticast> bound;
};

Rank first_of_host(const MulticastMember& member) {
  return member.control->mesh().hosts().first_rank_of_host(member.control->rank());
}

// The first rank of each host creates its object and passes its file.
Status create_object(const MulticastMember& member, BoundMulticast& made) {
  Communicator& control = *member.control;
  if (control.rank() != first_of_host(member)) return {};
  if (member.memory == nullptr) return unsupported("there is no memory to bind");
  std::vector<Rank> others;
  for (Rank peer = 0; peer < control.ranks(); ++peer)
    if (peer != control.rank() && control.mesh().hosts().same_host(peer, control.rank())) others.push_back(peer);
  made.object = TUTTI_TRY(member.device->create_multicast(member.memory, static_cast<Rank>(others.size() + 1)));
  const File file = TUTTI_TRY(made.object->file());
  for (const Rank peer : others) TUTTI_CHECK_OK(control.pass(peer, file.get()));
  return {};
}

Status open_object(const MulticastMember& member, BoundMulticast& made) {
  if (member.control->rank() == first_of_host(member)) return {};
  const File file = TUTTI_TRY(member.control->take_passed(first_of_host(member)));
  if (member.memory == nullptr) return unsupported("there is no memory to bind");
  made.object = TUTTI_TRY(member.device->open_multicast(member.memory, file));
  return {};
}

Status bind_memory(const MulticastMember& member, BoundMulticast& made) {
  made.address = TUTTI_TRY(member.device->bind(*made.object, member.memory));
  return {};
}

}  // namespace

// Each rank adds its device when it creates or opens the object. When all have, each binds its memory. A rank that
// fails still takes part in the next exchange, after which all ranks give up.
Result<std::vector<BoundMulticast>> bind_to_multicast(const std::vector<MulticastMember>& members,
                                                      const char* subject) {
  UnfinishedObjects made(members.size());
  std::vector<Communicator*> controls;
  for (const MulticastMember& member : members) controls.push_back(member.control);
  for (const auto& step : {create_object, open_object, bind_memory}) {
    std::vector<std::vector<Outcome>> own;
    for (std::size_t i = 0; i < members.size(); ++i) own.push_back({outcome_of(step(members[i], made.bound[i]))});
    const auto all = TUTTI_TRY(gather(controls, own));
    for (Rank rank = 0; rank < all[0].size(); ++rank) {
      if (all[0][rank].error[0] == 0) continue;
      for (const Communicator* control : controls) {
        if (control->rank() == 0)
          log(LogLevel::warn, "%s do not use the switches between the GPUs, because of rank %u: %s", subject, rank,
              all[0][rank].error);
      }
      return std::vector<BoundMulticast>(members.size());
    }
  }
  return std::exchange(made.bound, {});
}

// Without memory the object is destroyed at once.
void destroy_when_idle(std::unique_ptr<DeviceMulticast> object) {
  (void)caught([&object]() -> Status {
    free_when_idle([kept = std::shared_ptr<DeviceMulticast>(std::move(object))]() mutable { kept.reset(); });
    return {};
  });
}

}  // namespace tutti
