#include "src/communicator/device/rounding_chunks.h"

namespace tutti {

Status RoundingChunks::provide(RankDeviceMemory& memory, std::size_t count) {
  if (ready_.size() < count) collect();
  while (ready_.size() < count) ready_.push_back(TUTTI_TRY(memory.allocate_uncleared(kBytes)));
  return {};
}

Result<std::byte*> RoundingChunks::take(RankDeviceMemory& memory) {
  TUTTI_CHECK_OK(provide(memory, 1));
  std::byte* chunk = ready_.back();
  ready_.pop_back();
  return chunk;
}

std::shared_ptr<void> RoundingChunks::lease(std::byte* chunk) {
  {
    const std::lock_guard lock(lent_->mutex);
    std::vector<std::byte*>& back = lent_->back;
    if (++lent_->count > back.capacity()) back.reserve(2 * lent_->count);
  }
  return {chunk, [lent = lent_](std::byte* returned) {
            const std::lock_guard lock(lent->mutex);
            lent->back.push_back(returned);
          }};
}

void RoundingChunks::collect() {
  const std::lock_guard lock(lent_->mutex);
  ready_.insert(ready_.end(), lent_->back.begin(), lent_->back.end());
  lent_->count -= lent_->back.size();
  lent_->back.clear();
}

}  // namespace tutti
