// Steps of a simulated rank that Tutti's GPU kernel runs as one; see ProgramLimits::joins_copies.
#pragma once

#include <algorithm>
#include <span>

#include "src/plan/step.h"
#include "tools/simulator/program.h"

namespace tutti::simulator {

class JoinedSteps {
 public:
  explicit JoinedSteps(Program& program) : program_(program) {}

  // Each function joins a step to the last one of its stage, or returns false. The step is not in the program yet, but
  // its ends are.

  // Joins a copy in the rank's own memory to another, if they await flags only before both and signal only after them.
  bool join_copy(Rank self, const Step& step, const TimedStep& timed) {
    if (!(copies(self, step.sources) && copies(self, step.targets))) return false;
    if (!follows(copied_) || timed.sources > 0 || program_.steps.back().targets > 0) return false;
    --copied_;
    program_.steps.back().units += timed.units;
    program_.steps.back().targets = timed.targets;
    return true;
  }

  // Joins a copy from a peer's scratch to the rank's own memory to others of equal length, if they await flags only
  // before all and signal only after them.
  bool join_read(Rank self, const Step& step, const TimedStep& timed) {
    const auto reads = [&](const Operand& each) { return each.space == Space::scratch && each.peer != self; };
    if (std::ranges::count_if(step.sources, reads) != 1 || !copies(self, step.targets)) return false;
    if (std::ranges::any_of(step.sources,
                            [&](const Operand& each) { return !reads(each) && each.space != Space::flag; }))
      return false;
    if (!follows(reads_)) return false;
    TimedStep& previous = program_.steps.back();
    if (timed.sources != 1 || previous.targets > 0 || previous.units != timed.units) return false;
    --reads_;
    ++previous.sources;
    previous.targets = timed.targets;
    return true;
  }

  // Joins a copy from the rank's own memory to scratch to others of equal length, of which the last one was to a peer's
  // scratch, if they await flags only before all and signal only after them.
  bool join_write(Rank self, const Step& step, const TimedStep& timed) {
    const auto is_flag = [](const Operand& each) { return each.space == Space::flag; };
    const auto writes = [](const Operand& each) { return each.space == Space::scratch; };
    if (!copies(self, step.sources) || std::ranges::count_if(step.targets, writes) != 1) return false;
    if (!std::ranges::all_of(step.targets, [&](const Operand& each) { return writes(each) || is_flag(each); }))
      return false;
    const bool joins =
        follows(writes_) && timed.sources == 0 && !signals_ && program_.steps.back().units == timed.units;
    signals_ = std::ranges::any_of(step.targets, is_flag);
    if (!joins) return false;
    --writes_;
    copied_ = 0;
    program_.steps.back().targets += timed.targets;
    return true;
  }

  // Joins a copy from memory to a lane, or from a lane to memory, to others of other lanes, equal length and direction.
  bool join_message(Rank self, const Step& step, const TimedStep& timed) {
    if (step.sources.size() != 1 || step.targets.size() != 1) return false;
    const bool receives = is_message(step.sources[0]);
    const Operand& memory = receives ? step.targets[0] : step.sources[0];
    if (!is_own(self, memory) || receives == is_message(step.targets[0])) return false;
    if (!follows(messages_)) return false;
    TimedStep& previous = program_.steps.back();
    if (previous.units != timed.units || (previous.sources > 0) != receives) return false;
    const std::uint32_t lane = program_.ends[timed.first].lane();
    const auto others = std::span(program_.ends).subspan(previous.first, timed.first - previous.first);
    if (std::ranges::any_of(others, [=](const End& other) { return other.lane() == lane; })) return false;
    --messages_;
    previous.sources += timed.sources;
    previous.targets += timed.targets;
    return true;
  }

 private:
  static bool is_own(Rank self, const Operand& operand) { return operand.is_memory() && operand.peer == self; }
  static bool is_message(const Operand& operand) { return operand.space == Space::lane; }
  static bool copies(Rank self, std::span<const Operand> operands) {
    return std::ranges::count_if(operands, [&](const Operand& each) { return is_own(self, each); }) == 1 &&
           std::ranges::all_of(operands,
                               [&](const Operand& each) { return is_own(self, each) || each.space == Space::flag; });
  }

  // Returns whether the last step of this kind is the last one of the stage. The next step becomes the last of the
  // kind.
  bool follows(std::size_t& last) const {
    const bool is_last = last == program_.steps.size() && last > program_.stages.back();
    last = program_.steps.size() + 1;
    return is_last;
  }

  Program& program_;
  // Numbers of steps up to the last copy, the last copied message, and the last copy from and to a peer's scratch.
  std::size_t copied_ = 0, messages_ = 0, reads_ = 0, writes_ = 0;
  bool signals_ = false;  // The last copy to scratch.
};

}  // namespace tutti::simulator
