// A call as a team gets it, and how ranks that work in each other's memory meet. Fixed-width plain data.
#pragma once

#include <cstdint>

#include "src/executor/program.h"
#include "src/executor/team/fold.h"

namespace tutti {

// Where a rank says which buffers it works on, to those that work in them: one per rank, channel and parity of the
// meeting. A rank cannot come to a meeting before all have left the last but one, so two are enough.
struct alignas(64) MeetingRecord {
  std::uint64_t meeting = 0;  // Counted from 1; written last.
  RankBuffers buffers;
  std::uint32_t signature = 0;
};
static_assert(sizeof(MeetingRecord) == 64);

// A call as a team gets it. Addresses are the device's.
struct TeamCall {
  const std::byte* image = nullptr;
  LaneState* const* ends = nullptr;         // [channel * lane_count + lane]
  MeetingRecord* const* records = nullptr;  // Of each rank: [channel * 2 + meeting % 2].
  std::uint64_t* meetings = nullptr;        // [channel]: this rank's so far.
  std::byte* workspace = nullptr;           // Null: the team's memory suffices. Else channel_bytes() per channel.
  RankBuffers self;
  std::byte* scratch = nullptr;
  FoldTask task;
  Signature signature;
  std::uint32_t rank = 0;
};
static_assert(sizeof(TeamCall) == 96);

}  // namespace tutti
