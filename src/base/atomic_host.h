// atomic.h for host compilers.
#pragma once

#include <atomic>

namespace tutti {

template <typename T>
using AtomicRef = std::atomic_ref<T>;

inline constexpr auto kMemoryOrderAcquire = std::memory_order_acquire;
inline constexpr auto kMemoryOrderRelaxed = std::memory_order_relaxed;
inline constexpr auto kMemoryOrderRelease = std::memory_order_release;
inline constexpr auto kMemoryOrderAcquireRelease = std::memory_order_acq_rel;

// Tells the core that this is a polling loop; about 40 to 140 cycles.
inline void pause() { __builtin_ia32_pause(); }

}  // namespace tutti
