#include "perf/rounding/serial_ranks.h"

#include <algorithm>

#include "src/plan/fuse.h"
#include "src/plan/lanes.h"

namespace tutti::rounding {
namespace {

constexpr std::uint8_t kSlotShift = 2;  // Same number of slots as in communicators.
constexpr std::uint64_t kMaxGroupBytes = 2 * kCompressionGroup;

}  // namespace

SerialRanks::SerialRanks(const Algorithm& algorithm, const Problem& problem, std::uint64_t count)
    : problem_(problem), count_(count) {
  std::vector<Plan> plans = emit_plans(algorithm, problem);
  for (Plan& plan : plans) fuse(plan);
  fuse_stages(plans);
  const std::uint64_t groups = compression_groups(count);
  const std::uint32_t units = plans[0].shape.units;
  slot_groups_ = std::max(longest_message(plans), 1U) * ((groups + units - 1) / units);
  members_.resize(problem.ranks);
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    Member& member = members_[rank];
    member.plan = std::make_unique<CompiledPlan>(
        plans[rank], [&](const Operand& operand, bool sends) { return end(rank, operand, sends); });
    if (member.plan->scratch_units() > 0) member.scratch.resize((member.plan->scratch_units() / units + 1) * count);
    member.memory.reserve(member.plan->program().widest);
  }
}

LaneState* SerialRanks::end(Rank self, const Operand& operand, bool sends) {
  Lane& lane = lanes_[{sends ? self : operand.peer, sends ? operand.peer : self, operand.tag}];
  if (lane.slots == nullptr && operand.space == Space::lane) {
    const std::uint64_t bytes = slot_groups_ * kMaxGroupBytes;
    lane.slots = std::make_unique_for_overwrite<std::byte[]>(bytes << kSlotShift);
    lane.writer.view = {.slots = lane.slots.get(),
                        .words = &lane.words,
                        .credits = &lane.credits,
                        .slot_bytes = static_cast<std::uint32_t>(bytes),
                        .slot_shift = kSlotShift};
    lane.reader.view = lane.writer.view;
  }
  return sends ? &lane.writer : &lane.reader;
}

Status SerialRanks::run(const TensorFormat& tensor, std::span<const RankBuffers> buffers, const RunOrder& order) {
  const CompressedFold fold(tensor.format, tensor.type, Reduction::sum, rounded_stores_of(problem_.collective));
  FoldArguments arguments;
  arguments.ranks = problem_.ranks;
  ++calls_;
  for (Rank rank = 0; rank < problem_.ranks; ++rank) {
    Member& member = members_[rank];
    Launch& launch = member.launch;
    launch.self = buffers[rank];
    launch.self.scratch = reinterpret_cast<std::byte*>(member.scratch.data());
    launch.input.count = launch.output.count = launch.scratch_blocks.count = count_;
    launch.cut = {.units = member.plan->program().units,
                  .parts = order.chunks,
                  .granule = kCompressionGroup,
                  .group = kCompressionGroup};
    launch.element_bytes = static_cast<std::uint32_t>(size_of(tensor.type));
    launch.group_bytes = static_cast<std::uint16_t>(compressed_bytes(tensor.format));
    launch.slice_elements = slot_groups_ * kCompressionGroup;
    launch.loop.chunks = order.chunks;
    launch.signature = {calls_};
    CpuBackend machine(member.memory, find_fold(tensor.type, Reduction::sum), arguments);
    machine.encode(&fold);
    member.interpreter.emplace(member.plan->program(), launch, machine, member.memory.pointers());
    member.done = false;
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (Rank i = 0; i < problem_.ranks; ++i) {
      const Rank rank = order.backwards ? problem_.ranks - 1 - i : i;
      TUTTI_CHECK_OK(advance(members_[rank], moved));
    }
  }
  if (std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.done; })) return {};
  return internal_error("deadlock of the ranks of " + describe(problem_));
}

Status SerialRanks::advance(Member& member, bool& moved) {
  if (member.done) return {};
  const Cursor before = member.interpreter->cursor();
  const Progress progress = member.interpreter->advance();
  if (progress == Progress::mismatch) return internal_error("a message of another call in " + describe(problem_));
  member.done = progress == Progress::done;
  moved = moved || member.done || !(member.interpreter->cursor() == before);
  return {};
}

}  // namespace tutti::rounding
