#include "src/executor/cpu/machine.h"

#include <algorithm>

#include "src/executor/cpu/foreign.h"

namespace tutti {

// One source. What comes from another process goes to this rank's first own target, and from there to all others.
void CpuMachine::copy_foreign() {
  const auto foreign = [&](std::uint32_t index) {
    return std::any_of(foreign_targets_.begin(), foreign_targets_.end(),
                       [&](const ForeignTarget& target) { return target.index == index; });
  };
  const auto note = [&](int error, Rank peer) {
    if (error != 0 && failure_.error == 0) failure_ = {error, peer};
  };
  const std::uint64_t bytes = arguments_.count * element_bytes_;
  const std::byte* source = sources_[0];
  for (std::uint32_t t = 0; t < arguments_.target_count; ++t) {
    if (foreign(t)) continue;
    if (foreign_source_) {
      note(copy_from_process(processes_[*foreign_source_], targets_[t], source, bytes), *foreign_source_);
      source = targets_[t];
      foreign_source_.reset();
    } else if (source != targets_[t]) {
      std::copy_n(source, bytes, targets_[t]);
    }
  }
  for (const ForeignTarget& target : foreign_targets_)
    note(copy_to_process(processes_[target.peer], targets_[target.index], source, bytes), target.peer);
  foreign_targets_.clear();
  foreign_source_.reset();
}

}  // namespace tutti
