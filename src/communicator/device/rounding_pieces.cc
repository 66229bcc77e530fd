#include "src/communicator/device/rounding_pieces.h"

namespace tutti {

Status RoundingPieces::provide(DeviceHome& home, std::size_t count) {
  if (ready_.size() < count) collect();
  while (ready_.size() < count) ready_.push_back(TUTTI_TRY(home.take_any(kBytes)));
  return {};
}

Result<std::byte*> RoundingPieces::take(DeviceHome& home) {
  TUTTI_CHECK_OK(provide(home, 1));
  std::byte* piece = ready_.back();
  ready_.pop_back();
  return piece;
}

std::shared_ptr<void> RoundingPieces::lend(std::byte* piece) {
  {
    const std::lock_guard lock(lent_->mutex);
    std::vector<std::byte*>& back = lent_->back;
    if (++lent_->count > back.capacity()) back.reserve(2 * lent_->count);
  }
  return {piece, [lent = lent_](std::byte* returned) {
            const std::lock_guard lock(lent->mutex);
            lent->back.push_back(returned);
          }};
}

void RoundingPieces::collect() {
  const std::lock_guard lock(lent_->mutex);
  ready_.insert(ready_.end(), lent_->back.begin(), lent_->back.end());
  lent_->count -= lent_->back.size();
  lent_->back.clear();
}

}  // namespace tutti
