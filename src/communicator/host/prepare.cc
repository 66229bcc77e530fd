// The prepared calls of a rank, by shape.
#include <utility>

#include "src/base/no_cancellation.h"
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/planning/planning.h"

namespace tutti {

Result<PreparedCall*> HostCommunicator::prepare_call(const Call& call, const CommunicatorOptions& options) {
  const CallKey key = planner_.key_of(call, options);
  auto& slot = calls_[mix(key.count * 31 + key.shape * 7 + key.in_place + key.forced) % calls_.size()];
  if (slot == nullptr || !(slot->key == key)) {
    const NoCancellation until_prepared;
    membership_.board.show_cpus(membership_.rank);
    auto fresh = TUTTI_TRY(autotunes(call, options) ? prepare_autotuning(call, options)
                                                    : planner_.prepare(call, options, nullptr));
    fresh->key = key;
    if (latest_ == slot.get()) latest_ = nullptr;
    slot = std::move(fresh);
  }
  if (slot->tuned != nullptr) {
    const NoCancellation until_prepared;
    return next_tried(slot, call, options);
  }
  latest_ = slot.get();
  show_ran(*latest_);
  return latest_;
}

}  // namespace tutti
