// atomic.h for host compilers.
#pragma once

#include <atomic>

#include "src/base/pause.h"

namespace tutti {

template <typename T>
using AtomicRef = std::atomic_ref<T>;

inline constexpr auto kMemoryOrderAcquire = std::memory_order_acquire;
inline constexpr auto kMemoryOrderRelaxed = std::memory_order_relaxed;
inline constexpr auto kMemoryOrderRelease = std::memory_order_release;
inline constexpr auto kMemoryOrderAcquireRelease = std::memory_order_acq_rel;

inline void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace tutti
