// An image is a prepared call in one contiguous region without addresses. Thread blocks copy it to shared memory and
// run it. The host builds it once per shape of call. All channels use the same image, or one for each order of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "src/executor/straighten.h"
#include "src/executor/thread_block/operands.h"

namespace tutti {

struct Image;

// Offsets in a thread block's memory, behind the image.
struct ChannelLayout {
  std::uint32_t states = 0, lanes = 0, begins = 0, peers = 0, pointers = 0, sources = 0, targets = 0, stages = 0,
                scaled = 0;
  std::uint32_t marks = 0, misaligned = 0;
  std::uint32_t bytes = 0;  // Total size, with the image; enough for LlCall, too.

  ChannelLayout() = default;
  explicit ChannelLayout(const Image& image);
};

// Offsets in a thread block's memory for LlCall, which knows them before it has the image.
struct LlLayout {
  static constexpr std::uint32_t kEndBytes = 16;
  std::uint32_t states, ends, begins;
  std::uint32_t bytes;  // Total size, with the image.

  TUTTI_HOST_DEVICE LlLayout(std::uint32_t image_bytes, std::uint32_t lanes)
      : states(image_bytes),
        ends((states + lanes * static_cast<std::uint32_t>(sizeof(LaneState)) + 15) / 16 * 16),
        begins(ends + lanes * kEndBytes),
        bytes((begins + lanes * static_cast<std::uint32_t>(sizeof(LaneState::next)) + 15) / 16 * 16) {}
};

// Offsets are bytes from the start of the image, multiples of 16.
struct Image {
  std::uint32_t bytes = 0;  // Total size.
  std::uint32_t lane_count = 0;
  std::uint32_t ranks = 0;
  std::uint32_t widest = 0;
  std::uint32_t stage_bytes = 0;  // Size of a staging buffer for an LL message; 0: none.
  std::uint32_t stage_count = 0;
  std::uint32_t units = 1;
  std::uint32_t accesses_peers = 0;  // 1: accesses peers' buffers.
  // Interpreted programs only, except operands.
  std::uint32_t steps = 0, operands = 0, rounds = 0, stages = 0;
  // Straight programs only.
  std::uint32_t straight_stages = 0, straight_steps = 0, straight_lanes = 0, straight_memory = 0;
  std::uint32_t straight_stage_count = 0, straight_lane_count = 0, straight_memory_count = 0;
  std::uint32_t straight_ll = 0;
  // In a thread block's copy: nonzero after a thread has decided to stop. kTooLate: the communicator has failed before.
  static constexpr std::uint32_t kTooLate = 2;
  std::uint32_t stop = 0;
  // [lane]: for a lane that sends LL messages, one on which the same peer sends some, else kNoAnswer.
  std::uint32_t answers = 0;
  std::uint32_t accesses_scratch = 0;  // 1: accesses peers' scratch, one by one or by switches.
  std::uint32_t by_switches = 0;       // 1: accesses memory of all ranks at its multicast address.
  // In a thread block's copy: nonzero if switches cannot access the buffers of this call.
  std::uint32_t uneven = 0;
  // Whether LlCall can run the image. kLlJoins: several steps use one lane. They may follow each other directly, since
  // those between them may have no elements.
  enum Ll : std::uint32_t { kNotLl, kLl, kLlJoins };
  Ll ll = kNotLl;
  std::uint32_t reserved[2] = {};
  // Bytes of each peer's buffers up to the last unit that a step accesses.
  std::uint64_t peer_input_bytes = 0, peer_output_bytes = 0;
  ChannelLayout layout;
  FoldTask task;  // In a thread block's copy: the task of the call, with its scalar.
  Launch launch;  // Without addresses.
};
static_assert(sizeof(Image) == 128 + sizeof(ChannelLayout) + sizeof(FoldTask) + sizeof(Launch) &&
              sizeof(Image) % 16 == 0);

inline constexpr std::uint32_t kNoAnswer = ~0U;

// Codes for a StraightMemory's base in an image.
inline constexpr std::uint64_t kBaseInput = 0, kBaseOutput = 1, kBaseScratch = 2, kBasePeers = 3;  // Three per peer.

// Returns the image of a launch. `launch` must have its final layout. launch.straight must be the view of `straight`,
// which is empty for interpreted programs. `ranks` is that of the problem. `accesses_peers` is true if the program
// accesses peers' buffers.
std::vector<std::byte> make_image(const Program& program, const Launch& launch, const StraightProgram& straight,
                                  std::uint32_t ranks, bool accesses_peers, std::uint64_t stage_bytes);

// Returns how many threads of a thread block have work at the same time: in each step, one for each pack or word of LL.
// ~0U: not known, for interpreted programs and compressed messages.
std::uint32_t busy_threads(const Launch& launch, const StraightProgram& straight);

// Concatenates the images of one call, padded to the length of the longest.
std::vector<std::byte> join_images(std::vector<std::vector<std::byte>> images);

}  // namespace tutti
