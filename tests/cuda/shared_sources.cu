// What host and device compile from one source, compiled for both: a kernel and a host function use each part, so that
// nvcc has to generate code for it. Nothing runs; the test is that this compiles.
#include "src/base/atomic.h"
#include "src/base/types.h"
#include "src/executor/lane_io.h"
#include "src/executor/lines.h"
#include "src/executor/numeric.h"
#include "src/executor/run.h"
#include "src/plan/layout.h"
#include "transports/lane_view.h"

namespace tutti {
namespace {

// Passes one message on from one lane to the next by the bulk protocol.
TUTTI_HOST_DEVICE bool relay(LaneState& from, LaneState& to, Signature signature, Extent extent) {
  if (!bulk_arrived(from) || !bulk_matches(from, signature) || !slot_free(to)) return false;
  const std::byte* source = slot_of(from.view, from.next);
  std::byte* target = slot_of(to.view, to.next);
  for (std::uint64_t i = extent.offset; i < extent.offset + extent.count; ++i) target[i] = source[i];
  bulk_post(to, signature);
  take(from);
  return true;
}

__global__ void relay_on_device(LaneState* lanes, Blocks blocks, Cut cut, Signature signature) {
  const Extent extent = part_of(run_extent(blocks, cut.units, blockIdx.x, 1), cut, threadIdx.x);
  while (!relay(lanes[0], lanes[1], signature, extent)) {
  }
}

}  // namespace

void launch_relay(LaneState* lanes, const Launch& launch) {
  relay_on_device<<<1, 32>>>(lanes, launch.input, launch.cut, launch.signature);
}

}  // namespace tutti
