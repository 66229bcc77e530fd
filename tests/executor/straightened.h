// Straight programs of plans, for tests.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "src/executor/compiled_plan.h"
#include "src/executor/straighten.h"
#include "src/executor/thread_block/image.h"

namespace tutti::test {

// A plan on one_way lanes of LL messages, unless a test changes them.
class Straightened {
 public:
  explicit Straightened(const Plan& plan)
      : peers_(plan.problem.ranks + 1), compiled_(plan, [this](const Operand& operand, bool sends) {
          LaneState& end = ends_[{operand.peer, operand.tag, sends}];
          end.view.protocol = Protocol::ll;
          end.view.slot_shift = 2;
          return &end;
        }) {
    launch.peers = peers_.data();
    launch.element_bytes = 4;
    launch.slice_elements = 1000;
    launch.loop.chunks = 1;
  }

  template <typename Change>
  Straightened& change_lanes(Change&& change) {
    for (auto& [name, end] : ends_) change(end.view);
    return *this;
  }

  std::vector<StraightStep> steps(std::uint64_t count, bool together = true) { return program(count, together).steps; }

  StraightProgram program(std::uint64_t count, bool together = true) {
    launch.input.count = launch.output.count = launch.scratch_blocks.count = count;
    launch.cut = {.units = compiled_.program().units, .parts = launch.loop.chunks, .granule = 1};
    launch.ring_elements = part_size((count + launch.cut.units - 1) / launch.cut.units, launch.cut);
    options.together = together;
    return straighten(compiled_.program(), launch, options);
  }

  // Whether LlCall can run the program.
  Image::Ll ll(std::uint64_t count) {
    const StraightProgram straight = program(count);
    launch.straight = straight.view();
    const std::vector<std::byte> image = make_image(compiled_.program(), launch, straight, 8, false, 0);
    return reinterpret_cast<const Image*>(image.data())->ll;
  }

  Launch launch;
  StraightOptions options = {.copies = true};

 private:
  std::vector<RankBuffers> peers_;
  std::map<std::tuple<Rank, std::uint16_t, bool>, LaneState> ends_;
  CompiledPlan compiled_;
};

inline Plan plan_of(const Steps& steps, std::uint32_t units) {
  Plan plan;
  plan.problem.ranks = 3;
  plan.shape = {.units = units, .scratch = 0, .rounds = 1, .stages = {0}};
  plan.steps = steps;
  plan.rounds = {0, static_cast<std::uint32_t>(steps.size())};
  return plan;
}

}  // namespace tutti::test
