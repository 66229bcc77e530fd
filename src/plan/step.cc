#include "src/plan/step.h"

#include "src/base/status.h"

namespace tutti {

void Steps::add(std::span<const Operand> sources, std::span<const Operand> targets, Fold fold) {
  TUTTI_ASSERT(sources.size() < 65536 && targets.size() < 65536);
  records_.push_back({static_cast<std::uint32_t>(operands_.size()), static_cast<std::uint16_t>(sources.size()),
                      static_cast<std::uint16_t>(targets.size()), fold});
  for (const std::span<const Operand> side : {sources, targets}) {
    for (Operand operand : side) {
      if (operand.is_memory() && operand.reserved == 0) operand.peer = self_;
      operand.reserved = 0;
      operands_.push_back(operand);
    }
  }
}

Step Steps::operator[](std::size_t index) const {
  const Record& record = records_[index];
  const Operand* first = operands_.data() + record.first;
  return {{first, record.sources}, {first + record.sources, record.targets}, record.fold};
}

RankRange owners_of(const Operand& operand, const Problem& problem, Rank self) {
  if (!operand.is_of_several()) return {operand.peer, operand.peer + 1};
  if (operand.peer == kAllRanks || problem.groups.empty()) return {0, problem.ranks};
  RankRange host;
  for (const Rank size : problem.groups[0]) {
    host = {host.end, host.end + size};
    if (self < host.end) break;
  }
  return host;
}

}  // namespace tutti
