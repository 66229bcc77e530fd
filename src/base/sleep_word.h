// A 32-bit word in shared memory on which one thread sleeps until another thread, of this or another process, has
// stored something that the sleeper waits for. 0: awake. 1: asleep, or about to sleep.
//
// The sleeper stores 1, polls all that it waits for once more, and calls sleep_on(). A waker stores and then calls
// wake_if_asleep(), which costs one load of a line that rarely changes. The waker uses no fence, so both may miss the
// store of the other. heavy_fence() between the sleeper's store and its poll excludes that if the waker's process has
// called allow_heavy_fence(). Otherwise, the sleeper must sleep for a short time only.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/atomic.h"

namespace tutti {

// Sleeps while the word is 1, for at most `timeout_ns`. May return early.
void sleep_on(std::uint32_t* word, std::int64_t timeout_ns);

// Clears the word, and wakes its sleeper if it was 1.
void wake(std::uint32_t* word);

// Allows heavy_fence() of other processes to act on this one. Returns false if the kernel does not support it.
bool allow_heavy_fence();

// A full fence of this thread and of all running threads whose process has called allow_heavy_fence(). Interrupts their
// CPUs, which takes microseconds.
void heavy_fence();

// Called after a store for which the word's thread may wait. Does nothing in kernels: lanes of devices have no words.
TUTTI_HOST_DEVICE inline void wake_if_asleep([[maybe_unused]] std::uint32_t* word) {
  TUTTI_HOST_ONLY({
    std::atomic_signal_fence(std::memory_order_seq_cst);  // The compiler must not move the load before the store.
    if (load_relaxed(word) != 0) [[unlikely]]
      wake(word);
  })
}

}  // namespace tutti
