// Definitions for transports, which move bytes between the memories of ranks. Transports know nothing about
// collectives.
#pragma once

#include <cstdint>

#include "src/base/lane_form.h"
#include "src/base/status.h"
#include "transports/lane_view.h"

namespace tutti {

enum class LaneEnd : std::uint8_t { writer, reader };

// A lane, or a pair of lanes with common slots. The forward lane is `writer` -> `reader`; the partner of a round_trip
// or swap lane has the opposite direction. Both ends use the same spec. Fixed-width plain data, sent with the address.
struct LaneSpec {
  std::uint32_t writer = 0;
  std::uint32_t reader = 0;
  std::uint16_t channel = 0;
  std::uint16_t tag = 0;          // Tag of the forward lane.
  std::uint16_t partner_tag = 0;  // Tag of the lane back; 0 for one_way.
  LaneForm form = LaneForm::one_way;
  Protocol protocol = Protocol::simple;
  std::uint32_t slot_bytes = 0;  // 0: a flag, which has counters only.
  std::uint32_t slot_shift = 0;  // 1 << slot_shift slots.

  auto operator<=>(const LaneSpec&) const = default;
};
static_assert(sizeof(LaneSpec) == 24);

// Location of a lane in memory of its owner: offsets into one of the owner's segments.
struct LaneAddress {
  std::uint64_t segment_bytes = 0;  // Size of the whole segment, for the end that maps it.
  std::uint32_t segment = 0;        // Index of the segment; its descriptor is passed to each peer once.
  std::uint32_t reserved = 0;
  std::uint64_t words = 0;  // LaneWords[2]: forward lane, partner.
  std::uint64_t slots = 0;
};
static_assert(sizeof(LaneAddress) == 32);

// Both directions of a spec, with addresses of one process.
struct LanePair {
  LaneView forward;
  LaneView partner;  // Only for round_trip and swap.
};

}  // namespace tutti
