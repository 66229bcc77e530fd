// Lane specs for tests of transports.
#pragma once

#include "transports/transport.h"

namespace tutti::test {

// Returns the spec of a lane from rank 0 to rank 1.
inline LaneSpec spec_of(std::uint32_t slot_bytes, std::uint32_t slot_shift, std::uint16_t channel = 0) {
  LaneSpec spec;
  spec.writer = 0;
  spec.reader = 1;
  spec.channel = channel;
  spec.slot_bytes = slot_bytes;
  spec.slot_shift = slot_shift;
  return spec;
}

}  // namespace tutti::test
