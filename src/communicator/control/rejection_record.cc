#include "src/communicator/control/rejection_record.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "src/base/atomic.h"

namespace tutti {
namespace {

using Words = std::array<std::uint64_t, sizeof RejectionRecord::text / 8>;

constexpr std::uint64_t kWriting = ~std::uint64_t{0};

std::uint64_t state_of(const Rejection& rejection) {
  return 2 * (rejection.collectives + 1) + static_cast<std::uint64_t>(rejection.call);
}

}  // namespace

bool show_rejection(RejectionRecord& own, const Rejection& rejection) {
  const std::uint64_t state = load_acquire(&own.state);
  if (state == kWriting || state >= state_of(rejection)) return false;
  Words words = {};
  std::memcpy(words.data(), rejection.text.data(), std::min(rejection.text.size(), sizeof words - 1));
  if (!compare_exchange(&own.state, state, kWriting)) return false;
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < words.size(); ++i) store_relaxed(&own.text[i], words[i]);
  store_release(&own.state, state_of(rejection));
  return true;
}

std::optional<Rejection> read_rejection(const RejectionRecord& record) {
  const std::uint64_t state = load_acquire(&record.state);
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = load_relaxed(&record.text[i]);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (state == 0 || state == kWriting || load_relaxed(&record.state) != state) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(words.data());
  return Rejection{state / 2 - 1, RejectedCall(state % 2), std::string(text, ::strnlen(text, sizeof words))};
}

}  // namespace tutti
