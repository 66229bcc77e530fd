// Calls that are launched together, a thread block for each channel of each call, and what a thread block tells the
// host. Fixed-width plain data: it goes to a kernel as its argument.
#pragma once

#include <cstdint>

#include "src/executor/thread_block/call.h"

namespace tutti {

inline constexpr std::uint32_t kMaxCalls = 28;  // Of one launch.

// Why a thread block gave up, for the host to read. The first of a rank's thread blocks wins.
struct KernelReport {
  std::uint32_t claimed = 0;
  std::uint32_t written = 0;   // 1: the rest is there.
  std::uint32_t mismatch = 0;  // 1: what arrived belongs to another call; 0: it waited too long, or was told to stop.
  std::uint32_t channel = 0;
  std::uint32_t step = 0;
  std::uint32_t peer = 0;
  std::uint32_t sends = 0;      // 1: it waited for room.
  std::uint32_t signature = 0;  // Of the call.
};
static_assert(sizeof(KernelReport) == 32);

struct KernelProgress {
  KernelReport report;
  std::uint64_t begun = 0;  // Number of the call that began last: those before it in its stream are done.
  std::uint32_t ended = 0;  // Of the last call that is done, where somebody has its stream say so.
  std::uint32_t reserved = 0;
};
static_assert(sizeof(KernelProgress) == 48);

// What ends a thread block's waits, and what it tells. Addresses are the device's, in memory of the host that it maps.
struct KernelWatch {
  const std::uint32_t* failed = nullptr;  // Not 0: the communicator has failed.
  std::uint64_t timeout_ns = 0;           // Of each call; 0: none.
  KernelProgress* reported = nullptr;
  std::uint64_t number = 0;     // Of the call.
  KernelTurn* turns = nullptr;  // By channel; null: a launch lasts until the call is done.
};
static_assert(sizeof(KernelWatch) == 40);

struct BatchCall {
  KernelCall call;
  KernelWatch watch;
  std::uint32_t channels = 1;
  std::uint32_t workspace_bytes = 0;  // Per channel, where call.workspace is used.
};
static_assert(sizeof(BatchCall) == 144);

// 4 KiB of arguments are what all devices take.
struct KernelBatch {
  BatchCall calls[kMaxCalls];
};
static_assert(sizeof(KernelBatch) <= 4096);

// Whether messages are narrower than their elements: in all calls, or in none.
inline bool has_compressed_messages(const KernelBatch& batch) {
  return batch.calls[0].call.task.compression != CompressionFormat::none;
}

}  // namespace tutti
