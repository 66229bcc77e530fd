// Memory operations with which lanes, flags and protocols synchronize ranks; the same on host and device. They have
// system scope: acquire for loads, release for stores. Words must be naturally aligned.
//
// A rank that stores one word and then loads a word of another rank needs a full_fence() in between. If both ranks do
// so, at least one of them sees the other's store. Records that may change while they are read, such as the
// communicator's board, also need fences; these exist on the host only.
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

// Returns true if *word was `expected` and is now `desired`. Not for the per-step path.
template <typename T>
TUTTI_HOST_DEVICE inline bool compare_exchange(T* word, T expected, T desired) {
  return AtomicRef<T>(*word).compare_exchange_strong(expected, desired, kMemoryOrderAcquireRelease);
}

}  // namespace tutti

// store_pair(words, data, flag) stores both words. The flag becomes visible after the data and, on the host, after all
// earlier stores. load_pair(words, data) returns the flag and stores into `data` the word that was stored with that
// flag. `words` is aligned to 16 bytes.
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
