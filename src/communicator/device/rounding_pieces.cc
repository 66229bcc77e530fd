#include "src/communicator/device/rounding_pieces.h"

namespace tutti {

Status RoundingPieces::provide(DeviceHome& home, std::size_t count) {
  while (ready_.size() < count) ready_.push_back(TUTTI_TRY(home.take_any(kBytes)));
  return {};
}

Result<std::byte*> RoundingPieces::take(DeviceHome& home) {
  TUTTI_CHECK_OK(provide(home, 1));
  std::byte* piece = ready_.back();
  ready_.pop_back();
  return piece;
}

}  // namespace tutti
