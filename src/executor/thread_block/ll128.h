// The LL128 protocol: a message is a sequence of 128-byte lines with 120 bytes of data and an 8-byte flag each. Eight
// adjacent threads store a line by one access, which GPUs and NVLink do not split, so one thread waits for the flag.
// Host threads do not run in lockstep, so one thread owns a line and stores the flag after the data. Host and device
// compile this source.
#pragma once

#include "src/executor/lane_operations.h"

#if defined(__CUDA_ARCH__)
#include "src/executor/thread_block/ll128_threads_cuda.h"
#else
#include "src/executor/thread_block/ll128_threads_portable.h"
#endif

namespace tutti {

// Data capacity of a slot of `slot_bytes`.
TUTTI_HOST_DEVICE constexpr std::uint64_t ll128_capacity(std::uint64_t slot_bytes) {
  return slot_bytes / kLl128LineBytes * kLl128LineData;
}

// Lines of a message. An empty message has one line, for its flag.
TUTTI_HOST_DEVICE inline std::uint64_t ll128_lines_for(std::uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes + kLl128LineData - 1) / kLl128LineData;
}

// Bytes in the line whose data begin at `begin`.
TUTTI_HOST_DEVICE inline std::uint32_t in_line(std::uint64_t bytes, std::uint64_t begin) {
  return static_cast<std::uint32_t>(bytes - begin < kLl128LineData ? bytes - begin : kLl128LineData);
}

// Sends the lines of thread `thread` of `thread_count`.
TUTTI_HOST_DEVICE [[gnu::noinline]] inline void ll128_send(std::byte* slot, std::uint64_t flag, const std::byte* from,
                                                           std::uint64_t bytes, std::uint32_t thread,
                                                           std::uint32_t thread_count) {
  const Ll128Threads threads(thread, thread_count);
  const std::uint64_t lines = ll128_lines_for(bytes);
  for (std::uint64_t r = threads.first(); r < lines; r += threads.step())
    threads.put(slot + r * kLl128LineBytes, flag, from + r * kLl128LineData, in_line(bytes, r * kLl128LineData));
}

// Copies this thread's lines to `to`, which must be aligned to 8 bytes. `await` takes a poll function and returns its
// result. Returns null if all lines have arrived, otherwise the address of a missing flag.
template <typename Await>
TUTTI_HOST_DEVICE inline const std::uint64_t* ll128_receive(const std::byte* slot, std::uint64_t flag, std::byte* to,
                                                            std::uint64_t bytes, std::uint32_t thread,
                                                            std::uint32_t thread_count, Await&& await) {
  const Ll128Threads threads(thread, thread_count);
  const std::uint64_t lines = ll128_lines_for(bytes);
  for (std::uint64_t r = threads.first(); r < lines; r += threads.step()) {
    const std::byte* line = slot + r * kLl128LineBytes;
    const auto* found = reinterpret_cast<const std::uint64_t*>(line + kLl128LineData);
    Progress progress = Progress::done;
    if (threads.leads()) {
      progress = await([&] {
        if (load_acquire(found) == flag) return Progress::done;
        return flag_mismatch(found, flag) ? Progress::mismatch : Progress::waiting;
      });
    }
    if (!threads.all_done(progress == Progress::done)) return found;
    threads.take(line, to + r * kLl128LineData, in_line(bytes, r * kLl128LineData));
  }
  return nullptr;
}

}  // namespace tutti
