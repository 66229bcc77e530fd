// atomic.h under nvcc: system-scope atomics of libcu++, for host and device code.
#pragma once

#include <cuda/atomic>

namespace tutti {

template <typename T>
using AtomicRef = cuda::atomic_ref<T, cuda::thread_scope_system>;

inline constexpr auto kMemoryOrderAcquire = cuda::memory_order_acquire;
inline constexpr auto kMemoryOrderRelaxed = cuda::memory_order_relaxed;
inline constexpr auto kMemoryOrderRelease = cuda::memory_order_release;
inline constexpr auto kMemoryOrderAcquireRelease = cuda::memory_order_acq_rel;

TUTTI_HOST_DEVICE inline void full_fence() {
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
}

}  // namespace tutti
