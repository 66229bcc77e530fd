// A call as a thread block gets it, and how ranks that work in each other's memory meet. Fixed-width plain data.
#pragma once

#include <cstdint>

#include "src/executor/run.h"
#include "src/executor/thread_block/fold.h"

namespace tutti {

inline constexpr std::uint32_t kMaxWindows = 64;  // Of a communicator; number 0 is none.

// A buffer as every rank can find it: from where a window begins, or, in window 0, an address that all share, if they
// do. Of a buffer that no peer looks for both are 0.
struct BufferPlace {
  std::uint64_t offset = 0;
  std::uint32_t window = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(BufferPlace) == 16);

// Where a rank says which buffers it works on, to those that work in them: one per rank, channel and parity of the
// meeting. A rank cannot come to a meeting before all have left the last but one, so two are enough.
struct alignas(64) MeetingRecord {
  std::uint64_t meeting = 0;  // Counted from 1; written last.
  BufferPlace input, output;
  std::uint32_t signature = 0;
};
static_assert(sizeof(MeetingRecord) == 64);

enum class TurnState : std::uint32_t { fresh, suspended, done, failed };

// Where a thread block has got to that takes turns with others on its device: it ends when it has waited a little, and
// a later launch of the same call takes it up from there. In memory of the host, which clears it before the call, and
// looks at it when a launch has ended.
struct alignas(64) KernelTurn {
  TurnState state = TurnState::fresh;
  std::uint32_t last = 0;  // 1: a thread block that waits gives up and reports. Set by the host.
  std::uint32_t more = 0;  // 1: some step of the round has a further slice.
  Cursor cursor;
};
static_assert(sizeof(KernelTurn) == 64);

// A rank's part of a window, as another's device sees it. Without bytes: there is none.
struct WindowPart {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(WindowPart) == 16);
inline constexpr WindowPart kWholeMemory = {0, ~std::uint64_t{0}};  // Window 0, where all ranks share addresses.
inline constexpr std::uint16_t kNotShown = 0xffff;                  // Instead of a window: no peer looks there.

// What a rank needs to meet the others. Addresses are its device's.
struct MeetingPlace {
  MeetingRecord* const* records = nullptr;  // Of each rank: [channel * 2 + meeting % 2].
  std::uint64_t* meetings = nullptr;        // [channel]: this rank's so far.
  const WindowPart* windows = nullptr;      // [window * ranks + rank]
  std::uint32_t* remote_accesses =
      nullptr;  // [channel]: not 0 while this rank's thread block may be in the peers' memory.
  const std::uint32_t* failed = nullptr;  // Not 0: nobody may go there any more.
};
static_assert(sizeof(MeetingPlace) == 40);

struct KernelRounding;

// A call as a thread block gets it. Addresses are the device's.
struct KernelCall {
  const std::byte* image = nullptr;  // Of `images` of equal size, one behind the other, the first.
  LaneState* const* ends = nullptr;  // [channel * lanes_apart + lane], see Image.
  union {
    const MeetingPlace* place = nullptr;  // Where the plan names peers' memory,
    const KernelRounding* rounding;       // or messages are narrow; null: these are rounded to nearest.
  };
  std::byte* workspace = nullptr;  // Null: the thread block's memory suffices. Else channel_bytes() per channel.
  std::uint16_t input_window = 0, output_window = 0;  // In which the buffers lie; or kNotShown.
  std::uint32_t images = 1;                           // Channel c obeys number c % images.
  RankBuffers self;
  std::byte* scratch = nullptr;
  FoldTask task;
  Signature signature;
  std::uint32_t rank = 0;
};
static_assert(sizeof(KernelCall) == 96);

}  // namespace tutti
