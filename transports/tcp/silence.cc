#include "transports/tcp/silence.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr std::int64_t kSilenceNs = 3'500'000'000;
constexpr std::uint32_t kMinAttempts = 2;

}  // namespace

std::int64_t SilenceDetector::update(const TcpSample& sample) {
  const bool due = sample.window > 0 ? sample.unacknowledged > 0 : sample.in_flight > 0 || sample.probes > 0;
  const std::uint32_t count = std::max(sample.retransmits, sample.probes);
  if (sample.acknowledged != acknowledged_ || !due_) {
    since_ns_ = sample.now_ns;
    attempts_ = count;
  } else {
    attempts_ += count >= counted_ ? count - counted_ : count;  // A smaller number means that the counter was reset.
  }
  counted_ = count;
  acknowledged_ = sample.acknowledged;
  due_ = due;
  const std::int64_t silent_ns = sample.now_ns - since_ns_;
  return due && attempts_ >= kMinAttempts && silent_ns >= kSilenceNs ? silent_ns : 0;
}

}  // namespace tutti
