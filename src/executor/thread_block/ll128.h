// The protocol between small messages and large ones: a message is a series of 128-byte rows, each with 120 bytes of
// data and a flag. After NCCL's LL128. A row is stored by one access of 8 workers side by side, which GPUs and NVLink
// do not tear apart; then it is enough that one of them awaits the flag. Where workers do not go in step (threads of
// the host), one of them has a row to itself and stores the flag behind the data. Host and device compile this source.
#pragma once

#include "src/executor/ports.h"

#if defined(__CUDA_ARCH__)
#include "src/executor/thread_block/row_crew_cuda.h"
#else
#include "src/executor/thread_block/row_crew_portable.h"
#endif

namespace tutti {

// The data that a slot of so many bytes holds.
TUTTI_HOST_DEVICE constexpr std::uint64_t ll128_capacity(std::uint64_t slot_bytes) {
  return slot_bytes / kRowBytes * kRowData;
}

// How many rows a message takes: one of no bytes has one, for its flag.
TUTTI_HOST_DEVICE inline std::uint64_t ll128_lines_for(std::uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes + kRowData - 1) / kRowData;
}

// Of the data that begin at `begin`, the part in their row.
TUTTI_HOST_DEVICE inline std::uint32_t in_row(std::uint64_t bytes, std::uint64_t begin) {
  return static_cast<std::uint32_t>(bytes - begin < kRowData ? bytes - begin : kRowData);
}

// Worker `worker` of `workers` sends its share.
TUTTI_HOST_DEVICE [[gnu::noinline]] inline void ll128_send(std::byte* slot, std::uint64_t flag, const std::byte* from,
                                                           std::uint64_t bytes, std::uint32_t worker,
                                                           std::uint32_t workers) {
  const RowCrew crew(worker, workers);
  const std::uint64_t rows = ll128_lines_for(bytes);
  for (std::uint64_t r = crew.first(); r < rows; r += crew.step())
    crew.put(slot + r * kRowBytes, flag, from + r * kRowData, in_row(bytes, r * kRowData));
}

// The worker's share is copied to `to`, which is aligned to 8 bytes. `await` takes a poll and returns what it comes to;
// null if all has arrived, else the flag that is missing.
template <typename Await>
TUTTI_HOST_DEVICE inline const std::uint64_t* ll128_receive(const std::byte* slot, std::uint64_t flag, std::byte* to,
                                                            std::uint64_t bytes, std::uint32_t worker,
                                                            std::uint32_t workers, Await&& await) {
  const RowCrew crew(worker, workers);
  const std::uint64_t rows = ll128_lines_for(bytes);
  for (std::uint64_t r = crew.first(); r < rows; r += crew.step()) {
    const std::byte* row = slot + r * kRowBytes;
    const auto* found = reinterpret_cast<const std::uint64_t*>(row + kRowData);
    Progress progress = Progress::done;
    if (crew.leads()) {
      progress = await([&] {
        if (load_acquire(found) == flag) return Progress::done;
        return flag_mismatch(found, flag) ? Progress::mismatch : Progress::waiting;
      });
    }
    if (!crew.all_done(progress == Progress::done)) return found;
    crew.take(row, to + r * kRowData, in_row(bytes, r * kRowData));
  }
  return nullptr;
}

}  // namespace tutti
