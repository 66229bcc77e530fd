#include "src/communicator/host/run_statistics.h"

namespace tutti {

LastRun RunStatistics::last_run() const {
  const ConnectedPlan* plan = plan_.load(std::memory_order_acquire);
  if (plan == nullptr) return {};
  const CompressionFormat compression = plan->key.compression;
  return {.algorithm = plan->key.algorithm->name(),
          .protocol = plan->slot_bytes == 0 ? "" : name(plan->key.protocol),
          .compression = name(compression),
          .error = compression == CompressionFormat::none
                       ? 0
                       : compression_error_after(compression, plan->roundings, rounding_)};
}

}  // namespace tutti
