#include "src/executor/thread_block/image.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <span>

#include "src/base/status.h"
#include "src/executor/thread_block/compression_rounding.h"
#include "src/executor/thread_block/ll_words.h"
#include "src/executor/thread_block/word_fold.h"

namespace tutti {
namespace {

constexpr std::size_t kAlignment = 16;

class ImageWriter {
 public:
  ImageWriter() : bytes_(sizeof(Image)) {}

  template <typename T>
  std::uint32_t add(std::span<const T> items) {
    const std::size_t begin = bytes_.size();
    bytes_.resize((begin + items.size_bytes() + kAlignment - 1) / kAlignment * kAlignment);
    if (!items.empty()) std::memcpy(bytes_.data() + begin, items.data(), items.size_bytes());
    return static_cast<std::uint32_t>(begin);
  }

  std::vector<std::byte> finish(Image image) {
    TUTTI_ASSERT(bytes_.size() < ~std::uint32_t{0});
    image.bytes = static_cast<std::uint32_t>(bytes_.size());
    image.layout = ChannelLayout(image);
    std::memcpy(bytes_.data(), &image, sizeof image);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

// Number of steps, operands and lanes of a program.
struct Extents {
  std::uint32_t steps = 0, operands = 0, lanes = 0;
};

Extents extents_of(const Program& program) {
  Extents extents;
  if (program.stage_count == 0) return extents;
  extents.steps = program.rounds[program.stages[program.stage_count]];
  for (std::uint32_t s = 0; s < extents.steps; ++s) {
    const Instruction& step = program.steps[s];
    extents.operands = std::max(extents.operands, step.first + step.sources + step.targets);
  }
  for (std::uint32_t k = 0; k < extents.operands; ++k) {
    if (!program.operands[k].is_memory()) extents.lanes = std::max(extents.lanes, program.operands[k].first + 1);
  }
  return extents;
}

// Bytes from the begin of a peer's buffer to the end of the last unit that a step accesses.
std::uint64_t bytes_of_peers(std::span<const Operand> operands, Space space, std::uint32_t units,
                             const Launch& launch) {
  std::uint64_t end = 0;
  for (const Operand& operand : operands) {
    if (operand.space != space || operand.reserved == 0) continue;
    for (std::uint32_t i = 0; i < operand.count; ++i) end = std::max<std::uint64_t>(end, operand.unit(i) + 1);
  }
  const Blocks& blocks = space == Space::input ? launch.input : launch.output;
  return unit_begin(blocks.count, units, end) * launch.element_bytes;
}

// See Image::answers.
std::vector<std::uint32_t> answers_of(const Program& program, const Extents& extents) {
  std::vector<std::uint32_t> answers(extents.lanes, kNoAnswer);
  std::map<Rank, std::uint32_t> received;  // A lane of LL messages, by peer.
  const auto each_ll = [&](bool sent, const auto& body) {
    for (const Instruction& step : std::span(program.steps, extents.steps)) {
      const std::span all(program.operands + step.first, std::size_t{step.sources} + step.targets);
      for (const Operand& operand : sent ? all.subspan(step.sources) : all.first(step.sources)) {
        const bool lane = operand.space == Space::lane;
        if (lane && program.lanes[operand.first]->view.protocol == Protocol::ll) body(operand);
      }
    }
  };
  each_ll(false, [&](const Operand& operand) { received[operand.peer] = operand.first; });
  each_ll(true, [&](const Operand& operand) {
    if (program.lanes[operand.first]->view.words != nullptr) return;  // The connection may still read the slots.
    if (const auto found = received.find(operand.peer); found != received.end()) answers[operand.first] = found->second;
  });
  return answers;
}

template <typename Pointer>
Pointer as_pointer(std::uint64_t number) {
  return reinterpret_cast<Pointer>(number);
}

std::uint64_t base_of(const StraightMemory& memory, const Launch& launch) {
  if (memory.base == &launch.self.input) return kBaseInput;
  if (memory.base == &launch.self.output) return kBaseOutput;
  if (memory.base == &launch.self.scratch) return kBaseScratch;
  const auto* table = reinterpret_cast<std::byte* const*>(launch.peers);
  return kBasePeers + static_cast<std::uint64_t>(memory.base - table);
}

// True if LlCall can run the step.
bool is_ll(const StraightStep& step, std::span<const StraightLane> lanes, std::span<const StraightMemory> memory) {
  const auto lane_fits = [&](const StraightLane& lane) {
    const LaneView& view = lane.lane->view;
    const bool one_way = view.protocol == Protocol::ll && view.form == LaneForm::one_way;
    return !lane.flag && one_way && lane.back == StraightLane::kNotBack && (step.outputs > 0 || lane.copy);
  };
  const auto memory_fits = [](const StraightMemory& extent) { return extent.operand->reserved == 0 && !extent.reused; };
  const bool fits =
      step.outputs > 0 ? step.inputs <= kMaxLlInputs && step.reads <= 1 : step.receives == 0 || step.sends == 0;
  return fits && !step.copies && step.folds == 1 && !by_switches(step.fold) && std::ranges::all_of(lanes, lane_fits) &&
         std::ranges::all_of(memory, memory_fits);
}

// Returns whether LlCall can run the program.
Image::Ll ll_of(const Launch& launch, const StraightProgram& straight) {
  if (!straight.ll || straight.view().stage_count != 1 || launch.cut.group > 1) return Image::kNotLl;
  std::vector<std::uint32_t> used;
  for (const StraightStep& step : straight.steps) {
    const auto lanes = std::span(straight.lanes).subspan(step.lanes, std::size_t{step.receives} + step.sends);
    const auto memory = std::span(straight.memory).subspan(step.memory, std::size_t{step.reads} + step.writes);
    if (!is_ll(step, lanes, memory)) return Image::kNotLl;
    for (const StraightLane& lane : lanes) used.push_back(lane.operand->first);
  }
  std::ranges::sort(used);
  const bool reused = launch.loop.chunks > 1 || std::ranges::adjacent_find(used) != used.end();
  return reused ? Image::kLlJoins : Image::kLl;
}

}  // namespace

ChannelLayout::ChannelLayout(const Image& image) {
  std::uint32_t at = image.bytes;
  const auto take = [&](std::uint32_t count, std::size_t size) {
    const std::uint32_t begin = at;
    at = (at + count * static_cast<std::uint32_t>(size) + 15) / 16 * 16;
    return begin;
  };
  const std::uint32_t more = image.widest + 1;
  states = take(image.lane_count, sizeof(LaneState));  // First; see Channel::load_lanes().
  lanes = take(image.lane_count, sizeof(LaneState*));
  begins = take(image.lane_count, sizeof(LaneState::next));
  peers = take((image.accesses_peers | image.accesses_scratch) != 0 ? image.ranks + image.by_switches : 0,
               sizeof(RankBuffers));
  pointers = take(2 * more, sizeof(std::byte*));
  sources = take(more, sizeof(std::byte*));
  targets = take(more, sizeof(std::byte*));
  stages = take(image.stage_bytes != 0 ? more + 1 : 0, image.stage_bytes);
  scaled = take(more, 1);
  marks = take(image.launch.cut.group > 1 ? static_cast<std::uint32_t>(sizeof(KernelRounding)) + 2 * more : 0, 1);
  misaligned = take(1, sizeof(std::uint32_t));
  bytes = image.ll == Image::kNotLl ? at : std::max(at, LlLayout(image.bytes, image.lane_count).bytes);
}

std::vector<std::byte> make_image(const Program& program, const Launch& launch, const StraightProgram& straight,
                                  std::uint32_t ranks, bool accesses_peers, std::uint64_t stage_bytes) {
  const Extents extents = extents_of(program);
  ImageWriter writer;
  Image image;
  image.ranks = ranks;
  image.widest = program.widest;
  image.accesses_peers = accesses_peers;
  image.stage_bytes = static_cast<std::uint32_t>((stage_bytes + kAlignment - 1) / kAlignment * kAlignment);
  image.lane_count = extents.lanes;
  image.stage_count = program.stage_count;
  image.units = program.units;
  const std::span<const Operand> operands(program.operands, extents.operands);
  image.operands = writer.add(operands);
  image.answers = writer.add(std::span<const std::uint32_t>(answers_of(program, extents)));
  image.accesses_scratch = std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
    return operand.space == Space::scratch && operand.reserved != 0;
  });
  image.by_switches = std::any_of(operands.begin(), operands.end(),
                                  [&](const Operand& operand) { return operand.is_memory() && operand.peer == ranks; });
  if (image.by_switches != 0) image.widest = std::max(image.widest, ranks);  // See fold_of_buffers().
  for (const StraightStep& step : straight.steps)
    image.widest =
        std::max({image.widest, std::uint32_t{step.inputs} * step.folds, std::uint32_t{step.outputs} * step.folds});
  image.peer_input_bytes = bytes_of_peers(operands, Space::input, program.units, launch);
  image.peer_output_bytes = bytes_of_peers(operands, Space::output, program.units, launch);
  const Straight view = straight.view();
  image.ll = ll_of(launch, straight);
  if (view.stages != nullptr) {
    std::vector<StraightLane> lanes = straight.lanes;
    for (StraightLane& lane : lanes) {
      lane.lane = as_pointer<LaneState*>(lane.operand->first);
      lane.operand = as_pointer<const Operand*>(static_cast<std::uint64_t>(lane.operand - program.operands));
    }
    std::vector<StraightMemory> memory = straight.memory;
    for (StraightMemory& extent : memory) {
      extent.base = as_pointer<std::byte* const*>(base_of(extent, launch));
      extent.operand = as_pointer<const Operand*>(static_cast<std::uint64_t>(extent.operand - program.operands));
    }
    image.straight_stages = writer.add(std::span(straight.stages));
    image.straight_steps = writer.add(std::span(straight.steps));
    image.straight_lanes = writer.add(std::span<const StraightLane>(lanes));
    image.straight_memory = writer.add(std::span<const StraightMemory>(memory));
    image.straight_stage_count = view.stage_count;
    image.straight_lane_count = static_cast<std::uint32_t>(lanes.size());
    image.straight_memory_count = static_cast<std::uint32_t>(memory.size());
    image.straight_ll = view.ll;
  } else if (program.stage_count > 0) {
    image.steps = writer.add(std::span(program.steps, extents.steps));
    image.rounds = writer.add(std::span(program.rounds, program.stages[program.stage_count] + 1));
    image.stages = writer.add(std::span(program.stages, program.stage_count + 1));
  }
  image.launch = launch;
  image.launch.straight = {};
  image.launch.self = {};
  image.launch.peers = nullptr;
  return writer.finish(image);
}

std::uint32_t busy_threads(const Launch& launch, const StraightProgram& straight) {
  if (straight.steps.empty() || launch.cut.group > 1) return ~0U;
  std::uint64_t busy = 1;
  for (const StraightStep& step : straight.steps) {
    const std::uint64_t bytes = launch.message_bytes(step.size);
    const std::uint64_t packs = (bytes + kPackBytes - 1) / kPackBytes;
    const std::uint64_t messages = std::bit_ceil(std::max<std::uint64_t>(step.receives, step.sends));
    const std::uint64_t words = straight.ll ? std::bit_ceil(ll_words_for(bytes)) : 1;
    busy = std::max({busy, packs * (step.copies ? step.inputs : 1), messages * words});
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(busy, ~0U));
}

std::vector<std::byte> join_images(std::vector<std::vector<std::byte>> images) {
  std::size_t longest = 0;
  for (const std::vector<std::byte>& image : images) longest = std::max(longest, image.size());
  std::vector<std::byte> joined;
  for (std::vector<std::byte>& bytes : images) {
    auto& image = *reinterpret_cast<Image*>(bytes.data());
    image.bytes = static_cast<std::uint32_t>(longest);
    image.layout = ChannelLayout(image);
    bytes.resize(longest);
    joined.insert(joined.end(), bytes.begin(), bytes.end());
  }
  return joined;
}

}  // namespace tutti
