// A call as a thread block receives it, and the exchange of buffer addresses between ranks that access each other's
// memory. Plain data of fixed width.
#pragma once

#include <cstdint>

#include "src/base/access_words.h"
#include "src/base/failed_words.h"
#include "src/executor/run.h"
#include "src/executor/thread_block/fold.h"

namespace tutti {

inline constexpr std::uint32_t kMaxWindows = 64;  // Maximum windows per communicator; number 0 is not a window.

// A buffer as every rank can locate it: an offset within a window. In window 0, the offset is an address that all ranks
// share. Both fields are 0 for buffers that no peer accesses.
struct BufferLocation {
  std::uint64_t offset = 0;
  std::uint32_t window = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(BufferLocation) == 16);

// A rank's buffer addresses, published for peers that access them: one record per rank, channel and parity of the
// sequence number. A rank begins an exchange only after all ranks have ended the exchange before the previous one, so
// two records suffice. After a failure, a later call may overwrite the record of a call that stopped.
struct alignas(64) AddressRecord {
  std::uint64_t sequence = 0;  // Number of the exchange, from 1; written last.
  BufferLocation input, output;
  std::uint32_t signature = 0;
};
static_assert(sizeof(AddressRecord) == 64);

enum class ThreadBlockState : std::uint32_t { fresh, suspended, done, failed };

// Saved progress of a thread block that shares the device in time slices. The thread block ends after a short wait, and
// a later launch of the call resumes there. In host memory. The host clears it before the call and reads it after each
// launch.
struct alignas(64) ThreadBlockProgress {
  ThreadBlockState state = ThreadBlockState::fresh;
  std::uint32_t last = 0;  // 1: a waiting thread block gives up and reports. Set by the host.
  std::uint32_t more = 0;  // 1: some step of the round has another slice.
  Cursor cursor;
};
static_assert(sizeof(ThreadBlockProgress) == 64);

// A rank's part of a window, as seen by another device. bytes == 0: no such part.
struct WindowPart {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(WindowPart) == 16);
inline constexpr WindowPart kWholeMemory = {0, ~std::uint64_t{0}};  // Window 0, if all ranks share addresses.
inline constexpr std::uint16_t kNotShown = 0xffff;  // Instead of a window number: no peer accesses the buffer.

// Data for access to other ranks' memory: for exchanging buffer addresses, and the addresses of scratch, which are
// constant. Addresses are those of this rank's device.
struct AddressExchange {
  AddressRecord* const* records = nullptr;  // [rank][channel * 2 + sequence % 2]
  std::uint64_t* counts = nullptr;          // [channel]: this rank's exchanges so far.
  const WindowPart* windows = nullptr;      // [window * ranks + rank]
  AccessWords* remote_accesses = nullptr;   // Words of this rank.
  const FailedWords* failed = nullptr;      // Set: peers' memory must not be accessed any more.
  // [rank], then the multicast address or null; outlives all kernels of all ranks.
  std::byte* const* scratch = nullptr;
  std::byte* const* multicast = nullptr;  // [window]: multicast address of the parts of all ranks, or null.
};
static_assert(sizeof(AddressExchange) == 56);

struct KernelRounding;

// A call as a thread block receives it. Addresses are those of the device.
struct KernelCall {
  // First of `images` consecutive images of equal size; behind them, the addresses of the lane ends.
  const std::byte* image = nullptr;
  std::uint32_t image_bytes = 0;  // Per image.
  std::uint32_t lanes = 0;        // Lane ends of each channel; null ends are unused.
  union {
    const AddressExchange* exchange = nullptr;  // If the plan accesses peers' buffers or scratch, else null.
    const KernelRounding* rounding;             // If messages are compressed; null: round to nearest.
  };
  std::byte* workspace = nullptr;                     // channel_bytes() per channel. Null: shared memory suffices.
  std::uint16_t input_window = 0, output_window = 0;  // Windows of the buffers, or kNotShown.
  std::uint16_t images = 1;                           // Channel c runs image c % images.
  std::uint8_t accesses_peers = 0;  // 1: the plan accesses peers' buffers; must not begin after a failure.
  std::uint8_t ll = 0;              // 1: LlCall can run all images.
  RankBuffers self;
  FoldTask task;
  Signature signature;
  std::uint32_t rank = 0;

  TUTTI_HOST_DEVICE LaneState* const* ends(std::uint32_t channel) const {
    const auto* table = reinterpret_cast<LaneState* const*>(image + std::size_t{images} * image_bytes);
    return table + std::size_t{channel} * lanes;
  }
};
static_assert(sizeof(KernelCall) == 96);

}  // namespace tutti
