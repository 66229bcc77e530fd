// Calls launched together, and the report of a thread block to the host.
// Plain data of fixed width: a batch is a kernel argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/executor/thread_block/call.h"

namespace tutti {

inline constexpr std::uint32_t kMaxCalls = 28;  // Maximum calls per launch.

// Why a thread block gave up; read by the host. The first thread block of a rank to claim it wins.
struct KernelReport {
  std::uint32_t claimed = 0;
  std::uint32_t written = 0;   // 1: all other fields are valid.
  std::uint32_t mismatch = 0;  // 1: a received message belongs to another call. 0: timeout, or stopped by the host.
  std::uint32_t channel = 0;
  std::uint32_t step = 0;
  std::uint32_t peer = 0;
  std::uint32_t sends = 0;      // 1: waited for a free slot.
  std::uint32_t signature = 0;  // Signature of the call.
};
static_assert(sizeof(KernelReport) == 32);

struct KernelProgress {
  KernelReport report;
  // Number of the last call whose first channel has ended. Calls with earlier numbers are done.
  std::uint64_t passed = 0;
  std::uint32_t ended = 0;  // Number of the last completed call, where the stream writes it.
  std::uint32_t reserved = 0;
};
static_assert(sizeof(KernelProgress) == 48);

// Stop conditions of a thread block's waits, and the address of its report. Device addresses in mapped host memory.
struct KernelWatch {
  const FailedWords* failed = nullptr;  // Set: the communicator has failed.
  std::uint64_t timeout_ns = 0;         // Per call; 0: none.
  KernelProgress* kernel_progress = nullptr;
  std::uint64_t number = 0;                 // Number of the call; 0: its end is not reported.
  ThreadBlockProgress* progress = nullptr;  // [channel]; null: the launch lasts until the call is done.
};
static_assert(sizeof(KernelWatch) == 40);

struct BatchCall {
  KernelCall call;
  KernelWatch watch;
  std::uint32_t channels = 1;
  std::uint32_t workspace_bytes = 0;  // Per channel, if call.workspace is used.
};
static_assert(sizeof(BatchCall) == 144);

// 4 KiB is the maximum argument size on all devices.
struct KernelBatch {
  BatchCall calls[kMaxCalls];
  // 1: a thread block runs a channel of one call. Otherwise the number of calls: a thread block runs its channel of all
  // calls, one after the other. Each call is then runs_as_ll().
  std::uint32_t in_order = 1;
};
static_assert(sizeof(KernelBatch) <= 4096);

// True if messages are compressed. All calls of a batch agree on this.
inline bool has_compressed_messages(const KernelBatch& batch) {
  return batch.calls[0].call.task.compression != CompressionFormat::none;
}

// True if LlCall runs the call. It does not run calls in time slices, which are resumed, or in workspaces.
inline bool runs_as_ll(const BatchCall& entry) {
  const bool to_the_end = entry.watch.progress == nullptr && entry.call.workspace == nullptr;
  return entry.call.ll != 0 && to_the_end && entry.call.task.reduction != Reduction::pre_mul_sum;
}

inline bool runs_as_ll(const KernelBatch& batch, std::uint32_t count) {
  return std::all_of(batch.calls, batch.calls + count, [](const BatchCall& entry) { return runs_as_ll(entry); });
}

}  // namespace tutti
