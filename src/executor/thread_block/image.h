// A prepared call in one chunk of memory without addresses: what a thread block copies next to itself and obeys. Made
// on the host, once per shape of call; all channels read the same, or each the one of its order of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "src/executor/straighten.h"
#include "src/executor/thread_block/operands.h"

namespace tutti {

// Offsets are from the start of the image, in bytes, and multiples of 16.
struct Image {
  std::uint32_t bytes = 0;  // Of all of it.
  std::uint32_t lane_count = 0;
  std::uint32_t ranks = 0;
  std::uint32_t widest = 0;
  std::uint32_t stage_bytes = 0;  // Room for a small message; 0: there are none.
  std::uint32_t stage_count = 0;
  std::uint32_t units = 1;
  std::uint32_t meets = 0;  // 1: works in the peers' memory.
  // Of a program that is interpreted,
  std::uint32_t steps = 0, operands = 0, rounds = 0, stages = 0;
  // and of one that is straight, which has operands as well.
  std::uint32_t straight_stages = 0, straight_steps = 0, straight_lanes = 0, straight_memory = 0;
  std::uint32_t straight_stage_count = 0, straight_lane_count = 0, straight_memory_count = 0;
  std::uint32_t straight_ll = 0;
  std::uint32_t stop = 0;  // Of a thread block's copy: not 0 once a worker has found that the thread block must stop.
  std::uint32_t lanes_apart = 0;  // From the ends of a channel to those of the next: the most lanes of any image.
  // Of each peer's buffers, up to the last that some step names.
  std::uint64_t peer_input_bytes = 0, peer_output_bytes = 0;
  FoldTask task;  // Of a thread block's copy: the call's, with the scalar.
  Launch launch;  // Without addresses.
};
static_assert(sizeof(Image) == 104 + sizeof(FoldTask) + sizeof(Launch) && sizeof(Image) % 16 == 0);

// What stands for a StraightMemory's base in an image.
inline constexpr std::uint64_t kBaseInput = 0, kBaseOutput = 1, kBaseScratch = 2, kBasePeers = 3;  // Two each.

// The bytes of the image of a program as launched: `launch` has its final layout, and launch.straight is that of
// `straight`, which is empty if the program is to be interpreted. `ranks`: of the problem. `meets`: it names peers'
// memory.
std::vector<std::byte> make_image(const Program& program, const Launch& launch, const StraightProgram& straight,
                                  std::uint32_t ranks, bool meets, std::uint64_t stage_bytes);

// Images of one call, one behind the other, each as long as the longest.
std::vector<std::byte> join_images(std::vector<std::vector<std::byte>> images);

}  // namespace tutti
