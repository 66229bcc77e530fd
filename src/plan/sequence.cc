#include "src/plan/sequence.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>

#include "src/base/status.h"

namespace tutti {
namespace {

// Returns the problem of a part for the part's algorithm: in place if input and output lie in the same memory.
Problem problem_of(const Part& part, const Problem& parent) {
  Problem problem = part.problem;
  const bool callers_memory = part.input <= Space::output && part.output <= Space::output;
  problem.in_place = part.input == part.output || (parent.in_place && callers_memory);
  return problem;
}

// Returns whether this side has one block, which lies at the rank's own block of the other side.
bool lies_at_own_block(Collective collective, Space space) {
  switch (collective) {
    case Collective::reduce_scatter:
    case Collective::scatter: return space == Space::output;
    case Collective::all_gather:
    case Collective::gather: return space == Space::input;
    default: return false;
  }
}

// Translates the steps of one part to ranks, units and operand spaces of its parent.
class Translation {
 public:
  Translation(const Part& part, const Composition& parent, std::uint32_t part_units)
      : part_(part),
        part_units_(part_units),
        cuts_(static_cast<std::uint32_t>(part.cuts.size()) - 1),
        period_((part.cuts.back() + parent.units - 1) / parent.units * parent.units) {}

  void append(const Step& step, Steps& steps) {
    sources_.clear();
    targets_.clear();
    for (const Operand& operand : step.sources) sources_.push_back(translated(operand));
    for (const Operand& operand : step.targets) targets_.push_back(translated(operand));
    give_lanes_the_length_of_memory();
    steps.add(sources_, targets_, part_.fold == Fold::complete ? step.fold : Fold::partial);
  }

 private:
  Operand translated(Operand operand) const {
    const Rank owner = operand.peer;
    operand.peer = part_.members[owner];
    operand.reserved = 1;  // The owner is set, and Steps must keep it.
    if (!operand.is_memory()) {
      const std::uint32_t tag = std::uint32_t{operand.tag} + part_.tag;
      // A larger tag would name a lane of another part.
      TUTTI_ASSERT(tag <= std::numeric_limits<std::uint16_t>::max());
      operand.tag = static_cast<std::uint16_t>(tag);
      return operand;
    }
    if (lies_at_own_block(part_.problem.collective, operand.space)) operand.first += owner * part_units_;
    if (operand.space == Space::input) return ranged(operand, part_.input, 0);
    if (operand.space == Space::output) return ranged(operand, part_.output, 0);
    return ranged(operand, Space::scratch, part_.scratch);
  }

  // Returns the parent's unit at which the part's unit begins. Units beyond the last cut continue in the next period.
  std::uint32_t start(std::uint32_t unit) const { return unit / cuts_ * period_ + part_.cuts[unit % cuts_]; }
  std::uint32_t end(std::uint32_t unit) const { return unit / cuts_ * period_ + part_.cuts[unit % cuts_ + 1]; }

  Operand ranged(Operand operand, Space space, std::uint32_t base) const {
    operand.space = space;
    if (operand.count == 0) return operand;
    const std::uint32_t runs = (operand.count + operand.run - 1) / operand.run;
    const std::uint32_t first = start(operand.first);
    const std::uint32_t run = end(operand.first + std::min(operand.run, operand.count) - 1) - first;
    const std::uint32_t stride = runs > 1 ? start(operand.first + operand.stride) - first : run;
    for (std::uint32_t i = 1; i < runs; ++i) {  // One operand cannot describe runs of different lengths.
      const std::uint32_t begin = operand.first + i * operand.stride;
      const std::uint32_t length = std::min(operand.run, operand.count - i * operand.run);
      TUTTI_ASSERT(start(begin) == first + i * stride && end(begin + length - 1) - start(begin) <= run);
      TUTTI_ASSERT(i + 1 == runs || end(begin + length - 1) - start(begin) == run);
    }
    const std::uint32_t last = operand.unit(operand.count - 1);
    const std::uint32_t count = runs == 1 ? run : end(last) - (first + (runs - 1) * stride) + (runs - 1) * run;
    operand.first = base + first;
    operand.count = count;
    operand.run = run;
    operand.stride = stride;
    return operand;
  }

  void give_lanes_the_length_of_memory() {
    const auto is_memory = [](const Operand& operand) { return operand.is_memory(); };
    auto memory = std::find_if(sources_.begin(), sources_.end(), is_memory);
    if (memory == sources_.end()) memory = std::find_if(targets_.begin(), targets_.end(), is_memory);
    const bool has_memory = memory != targets_.end();
    for (std::vector<Operand>* side : {&sources_, &targets_}) {
      for (Operand& operand : *side) {
        if (operand.space != Space::lane) continue;
        TUTTI_ASSERT(has_memory);  // Without a memory operand, the units of the message are unknown.
        operand.count = operand.run = operand.stride = memory->count;
      }
    }
  }

  const Part& part_;
  const std::uint32_t part_units_;
  const std::uint32_t cuts_;    // Units for which the part has cuts.
  const std::uint32_t period_;  // Units of the parent, in whole blocks, after which the cuts repeat.
  std::vector<Operand> sources_, targets_;
};

}  // namespace

class SequenceMembers {
 public:
  struct Member {
    std::uint32_t part = 0;  // Within its stage.
    Rank rank = 0;           // Within the part.
  };
  struct PartShape {
    Problem problem;  // The problem passed to the part's algorithm.
    std::uint32_t rounds = 0, units = 1;
  };
  struct Stage {
    std::uint32_t rounds = 0;
    // First rounds within the stage; one entry unless all parts have the same stages.
    std::vector<std::uint32_t> stages{0};
    std::vector<PartShape> parts;
    std::vector<Member> members;  // Members of rank r: [first[r], first[r + 1]), in the order of parts.
    std::vector<std::uint32_t> first;
  };

  SequenceMembers(const Composition& composition, const Problem& problem) {
    for (const std::vector<Part>& parts : composition.stages) {
      stages_.emplace_back();
      add_shapes(parts, problem, stages_.back());
      add_members(parts, problem.ranks, stages_.back());
    }
  }

  const std::vector<Stage>& stages() const { return stages_; }

 private:
  static void add_shapes(const std::vector<Part>& parts, const Problem& problem, Stage& stage) {
    for (const Part& part : parts) {
      Problem sub_problem = problem_of(part, problem);
      Shape shape = part.algorithm->shape(sub_problem);
      stage.rounds = std::max(stage.rounds, shape.rounds);
      if (stage.parts.empty()) stage.stages = std::move(shape.stages);
      else if (stage.stages != shape.stages) stage.stages = {0};
      stage.parts.push_back({.problem = std::move(sub_problem), .rounds = shape.rounds, .units = shape.units});
    }
  }

  static void add_members(const std::vector<Part>& parts, Rank ranks, Stage& stage) {
    stage.first.assign(ranks + 1, 0);
    for (const Part& part : parts) {
      for (const Rank rank : part.members) ++stage.first[rank + 1];
    }
    std::partial_sum(stage.first.begin(), stage.first.end(), stage.first.begin());
    stage.members.resize(stage.first.back());
    std::vector<std::uint32_t> next(stage.first.begin(), stage.first.end() - 1);
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      for (Rank rank = 0; rank < parts[i].members.size(); ++rank)
        stage.members[next[parts[i].members[rank]]++] = {.part = i, .rank = rank};
    }
  }

  std::vector<Stage> stages_;
};

namespace {

// Concurrent threads may each build an entry; all entries are equal.
std::shared_ptr<const SequenceMembers> membership_of(const Composition& composition, const Problem& problem) {
  std::shared_ptr<const SequenceMembers>& kept = composition.membership[problem.in_place ? 1 : 0];
  std::shared_ptr<const SequenceMembers> found = std::atomic_load(&kept);
  if (found != nullptr) return found;
  found = std::make_shared<const SequenceMembers>(composition, problem);
  std::atomic_store(&kept, found);
  return found;
}

}  // namespace

Shape Sequence::shape(const Problem& problem) const {
  const auto composition = compose(problem);
  const auto membership = membership_of(*composition, problem);
  Shape shape{.units = composition->units, .scratch = composition->scratch, .rounds = 0, .stages = {}};
  for (const SequenceMembers::Stage& stage : membership->stages()) {
    if (stage.rounds == 0) continue;
    for (const std::uint32_t first : stage.stages) shape.stages.push_back(shape.rounds + first);
    shape.rounds += stage.rounds;
  }
  if (shape.stages.empty()) shape.stages = {0};
  return shape;
}

void Sequence::emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const {
  const auto composition = compose(problem);
  const auto membership = membership_of(*composition, problem);
  for (std::size_t i = 0; i < membership->stages().size(); ++i) {
    const SequenceMembers::Stage& stage = membership->stages()[i];
    if (round >= stage.rounds) {
      round -= stage.rounds;
      continue;
    }
    for (std::uint32_t j = stage.first[self]; j < stage.first[self + 1]; ++j) {
      const SequenceMembers::Member& member = stage.members[j];
      const Part& part = composition->stages[i][member.part];
      const SequenceMembers::PartShape& shape = stage.parts[member.part];
      if (round >= shape.rounds) continue;
      Steps sub_steps(member.rank);
      part.algorithm->emit(shape.problem, member.rank, round, sub_steps);
      Translation translation(part, *composition, shape.units);
      for (std::size_t k = 0; k < sub_steps.size(); ++k) translation.append(sub_steps[k], steps);
    }
    return;
  }
}

}  // namespace tutti
