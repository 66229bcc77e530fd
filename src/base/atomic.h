// The memory operations by which lanes, flags and their protocols synchronise ranks, the same on host and device:
// system scope, acquire on loads that admit data, release on stores that publish it. Words are naturally aligned.
// Who shows something, and then looks whether another has shown something, needs a full_fence() in between: of two that
// do, one sees the other. Records that may change while they are read (the communicator's board) need fences as well;
// they are on the host only.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

#ifdef __CUDACC__
#include "src/base/atomic_cuda.h"
#else
#include "src/base/atomic_host.h"
#endif

namespace tutti {

template <typename T>
TUTTI_HOST_DEVICE inline T load_acquire(const T* word) {
  return AtomicRef<T>(*const_cast<T*>(word)).load(kMemoryOrderAcquire);
}

template <typename T>
TUTTI_HOST_DEVICE inline T load_relaxed(const T* word) {
  return AtomicRef<T>(*const_cast<T*>(word)).load(kMemoryOrderRelaxed);
}

template <typename T>
TUTTI_HOST_DEVICE inline void store_release(T* word, T value) {
  AtomicRef<T>(*word).store(value, kMemoryOrderRelease);
}

template <typename T>
TUTTI_HOST_DEVICE inline void store_relaxed(T* word, T value) {
  AtomicRef<T>(*word).store(value, kMemoryOrderRelaxed);
}

// True if `expected` was there and `desired` now is. Off the per-step path only.
template <typename T>
TUTTI_HOST_DEVICE inline bool compare_exchange(T* word, T expected, T desired) {
  return AtomicRef<T>(*word).compare_exchange_strong(expected, desired, kMemoryOrderAcquireRelease);
}

}  // namespace tutti

// store_pair(words, data, flag): both words, the flag not before the data nor before any earlier store (on a device:
// not before the data). load_pair(words, data): the flag, and the data that were stored with it. `words` is aligned to
// 16 bytes.
#if defined(__CUDA_ARCH__)
#include "src/base/pair_cuda.h"
#else
#include "src/base/load_pair_portable.h"
#if defined(__x86_64__) && !defined(__CUDACC__) && !defined(__SANITIZE_THREAD__)
#include "src/base/store_pair_x86.h"
#else
#include "src/base/store_pair_portable.h"
#endif
#endif
