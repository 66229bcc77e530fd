#include "src/communicator/neighbours/neighbours.h"

#include <utility>

#include "src/base/log.h"

namespace tutti {
namespace {

// Where a writer's lanes begin in the reader's memory.
std::size_t inbox_at(Rank writer, Rank reader, std::size_t bytes) {
  return (writer < reader ? writer : writer - 1) * bytes;
}

}  // namespace

Neighbours::Neighbours(Rank self, Rank ranks, std::shared_ptr<DeviceHome> own)
    : self_(self), homes_(ranks), to_(ranks), from_(ranks), opened_(ranks), records_(ranks) {
  homes_[self] = std::move(own);
}

Neighbours::~Neighbours() { let_go(); }

void Neighbours::let_go() {
  for (std::byte*& memory : opened_) {
    if (memory != nullptr) home().device().close(std::exchange(memory, nullptr));
  }
}

// All ranks have said what they can: from here on they know the same.
void Neighbours::follow(Routes routes) {
  routes_ = std::move(routes);
  const std::size_t bytes = budget_.bytes;
  for (Rank peer = 0; peer < ranks(); ++peer) {
    if (peer == self_) continue;
    if (opened_[peer] != nullptr)
      records_[peer] = reinterpret_cast<MeetingRecord*>(opened_[peer] + (ranks() - 1) * bytes);
    if (routes_.between(self_, peer) == Route::inbox)
      to_[peer] = Inbox(opened_[peer] + inbox_at(self_, peer, bytes), bytes);
    if (routes_.between(peer, self_) == Route::inbox)
      from_[peer] = Inbox(home().inboxes() + inbox_at(peer, self_, bytes), bytes);
  }
  if (routes_.writers_by(Route::inbox, self_) == 0) home().close_inboxes();
}

Status Neighbours::use_host_memory(Segment memory) {
  in_host_ = std::make_unique<HostLanes>(home().shared_device(), std::move(memory));
  const auto inbox = [this](Rank writer, Rank reader) -> Result<Inbox> {
    const std::size_t at = routes_.host_pairs_before(writer, reader) * budget_.bytes;
    return Inbox(TUTTI_TRY(in_host_->show(at, budget_.bytes)), budget_.bytes);
  };
  for (Rank peer = 0; peer < ranks(); ++peer) {
    if (peer == self_) continue;
    if (routes_.between(self_, peer) == Route::host) to_[peer] = TUTTI_TRY(inbox(self_, peer));
    if (routes_.between(peer, self_) == Route::host) from_[peer] = TUTTI_TRY(inbox(peer, self_));
  }
  return {};
}

Result<MeetingRecord*> Neighbours::records(Rank rank) const {
  if (homes_[rank] == nullptr) return records_[rank];
  return homes_[rank]->records();
}

Result<LanePair> Neighbours::lane(const LaneSpec& spec) {
  if (routes_.between(spec.writer, spec.reader) == Route::home) return homes_[spec.reader]->lane(spec);
  return spec.writer == self_ ? to_[spec.reader].lane(spec) : from_[spec.writer].lane(spec);
}

}  // namespace tutti
