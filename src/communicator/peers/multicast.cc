#include "src/communicator/peers/multicast.h"

#include <cstring>
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
  char error[256] = {};  // Empty: it succeeded.
  DeviceShare object;    // Share of the object that the rank has created.
};
static_assert(sizeof(Outcome) == 344);
using Outcomes = std::vector<Outcome>;  // By rank.

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

Rank first_of_host(const MulticastMember& member) { return member.hosts->first_rank_of_host(member.control->rank()); }

// The first rank of each host creates its object, and passes its file if there is one.
Status create_object(const MulticastMember& member, const Outcomes&, BoundMulticast& made, DeviceShare& share) {
  Communicator& control = *member.control;
  if (control.rank() != first_of_host(member)) return {};
  if (member.memory == nullptr) return unsupported("there is no memory to bind");
  std::vector<Rank> others;
  for (Rank peer = 0; peer < control.ranks(); ++peer)
    if (peer != control.rank() && member.hosts->same_host(peer, control.rank())) others.push_back(peer);
  made.object = TUTTI_TRY(member.device->create_multicast(member.memory, static_cast<Rank>(others.size() + 1)));
  File file;
  share = TUTTI_TRY(made.object->share(file));
  if (!share.by_file()) return {};
  for (const Rank peer : others) TUTTI_CHECK_OK(control.pass(peer, file.get()));
  return {};
}

Status open_object(const MulticastMember& member, const Outcomes& created, BoundMulticast& made, DeviceShare&) {
  const Rank first = first_of_host(member);
  if (member.control->rank() == first) return {};
  const DeviceShare& share = created[first].object;
  File file;
  if (share.by_file()) file = TUTTI_TRY(member.control->take_passed(first));
  if (member.memory == nullptr) return unsupported("there is no memory to bind");
  made.object = TUTTI_TRY(member.device->open_multicast(member.memory, share, file));
  return {};
}

Status bind_memory(const MulticastMember& member, const Outcomes&, BoundMulticast& made, DeviceShare&) {
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
  std::vector<Outcomes> all(members.size());
  for (const auto& step : {create_object, open_object, bind_memory}) {
    std::vector<Outcomes> own(members.size(), Outcomes(1));
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Status status = step(members[i], all[i], made.bound[i], own[i][0].object);
      if (!status.ok()) std::strncpy(own[i][0].error, status.message().c_str(), sizeof own[i][0].error - 1);
    }
    all = TUTTI_TRY(gather(controls, own));
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
