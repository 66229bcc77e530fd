#include "tests/ptx/machine/operations.h"

#include <algorithm>

namespace tutti::ptx {

bool contains(const OperationClock& clock, std::uint32_t chain, std::uint32_t number) {
  return clock != nullptr && chain < clock->size() && (*clock)[chain] >= number;
}

bool contains(const OperationClock& clock, const OperationClock& other) {
  if (other == nullptr || clock == other) return true;
  for (std::size_t chain = 0; chain < other->size(); ++chain) {
    const std::uint32_t number = (*other)[chain];
    if (number > 0 && !contains(clock, static_cast<std::uint32_t>(chain), number)) return false;
  }
  return true;
}

OperationClock join(const OperationClock& a, const OperationClock& b) {
  if (contains(a, b)) return a;
  if (contains(b, a)) return b;
  std::vector<std::uint32_t> joined = *a;
  joined.resize(std::max(a->size(), b->size()));
  for (std::size_t chain = 0; chain < b->size(); ++chain) joined[chain] = std::max(joined[chain], (*b)[chain]);
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(joined));
}

OperationClock clock_after(const OperationOrder& order) {
  std::vector<std::uint32_t> own(order.chain + 1);
  own[order.chain] = order.number;
  return join(order.before, std::make_shared<const std::vector<std::uint32_t>>(std::move(own)));
}

void HostClock::add(const OperationClock& clock) {
  const std::lock_guard lock(mutex_);
  clock_ = join(clock_, clock);
}

OperationClock HostClock::get() const {
  const std::lock_guard lock(mutex_);
  return clock_;
}

}  // namespace tutti::ptx
