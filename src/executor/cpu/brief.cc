#include "src/executor/cpu/brief.h"

namespace tutti {
namespace {

class Briefing {
 public:
  Briefing(const Launch& launch, std::uint32_t outgoing) : launch_(launch), outgoing_(outgoing) {}

  void add(const StraightStep& step) {
    const StraightLane* const receives = launch_.straight.lanes + step.lanes;
    const StraightLane* const sends = receives + step.receives;
    const StraightLane* const end = sends + step.sends;
    const std::uint64_t bytes = step.count * launch_.element_bytes;
    for (const StraightLane* at = receives; at != sends; ++at) {
      if (!looks_) look();
      add(receiving(*at, bytes), *at, bytes);
      if (at->back == StraightLane::kNotBack) continue;
      add(MoveKind::back, *at, bytes);
      moves_.back().index = at->back;
    }
    for (const StraightLane* at = sends; at != end; ++at) {
      if (at->lane->view.form == LaneForm::one_way && at->lane->view.slots != nullptr) add(MoveKind::room, *at, bytes);
      if (at->flag || at->copy) continue;
      add(small(*at) ? MoveKind::outgoing : MoveKind::slot, *at, bytes);
    }
    const StraightMemory* const memory = launch_.straight.memory + step.memory;
    if (step.outputs > 0) {
      for (std::uint32_t k = 0; k < std::uint32_t{step.reads} + step.writes; ++k)
        add(k < step.reads ? MoveKind::read : MoveKind::write, memory[k]);
      moves_.push_back({.kind = MoveKind::fold,
                        .fold = step.fold,
                        .index = step.inputs,
                        .targets = step.outputs,
                        .bytes = step.count});
    }
    for (const StraightLane* at = sends; at != end; ++at) {
      add(!small(*at) ? MoveKind::post : at->copy ? MoveKind::copy : MoveKind::send, *at, bytes);
      if (!at->copy) continue;
      moves_.back().base = memory->base;
      moves_.back().offset = memory->offset;
    }
    for (const StraightLane* at = receives; at != sends; ++at) add(MoveKind::take, *at, bytes);
  }

  std::vector<Move> take() { return std::move(moves_); }

 private:
  bool small(const StraightLane& at) const { return launch_.straight.ll && !at.flag; }

  void look() {
    looks_ = true;
    const bool sent = !moves_.empty();
    moves_.push_back({.kind = MoveKind::look});
    if (sent) moves_.push_back({.kind = MoveKind::pause_for_reply});
  }

  MoveKind receiving(const StraightLane& at, std::uint64_t bytes) const {
    if (small(at)) return bytes <= kLineData ? MoveKind::line : MoveKind::ll;
    return at.flag ? MoveKind::flag : MoveKind::message;
  }

  void add(MoveKind kind, const StraightLane& at, std::uint64_t bytes) {
    moves_.push_back(
        {.kind = kind, .index = at.index, .lane = at.lane, .operand = at.operand, .offset = outgoing_, .bytes = bytes});
  }

  void add(MoveKind kind, const StraightMemory& at) {
    moves_.push_back({.kind = kind, .index = at.index, .base = at.base, .offset = at.offset});
  }

  const Launch& launch_;
  const std::uint32_t outgoing_;
  bool looks_ = false;
  std::vector<Move> moves_;
};

}  // namespace

std::vector<Move> brief(const Launch& launch, std::uint32_t outgoing) {
  const Straight& straight = launch.straight;
  if (straight.stages == nullptr || launch.cut.parts != 1 || launch.loop.chunks != 1) return {};
  Briefing briefing(launch, outgoing);
  const StraightStep* const end = straight.steps + straight.stages[straight.stage_count];
  for (const StraightStep* step = straight.steps; step != end; ++step) {
    const bool flags_only = step->inputs == 0 && step->outputs == 0 && step->reads == 0;
    if (step->count == 0 && !flags_only) return {};
    briefing.add(*step);
  }
  return briefing.take();
}

}  // namespace tutti
