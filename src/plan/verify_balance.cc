#include "src/plan/verify_balance.h"

namespace tutti {
namespace {

class Balance {
 public:
  explicit Balance(CellProgram& program) : program_(program), open_(program.fifos.size()), uses_(program.all_cells) {}

  Status check() {
    for (std::uint32_t stage = 0; stage < program_.stages(); ++stage) {
      for (round_ = program_.stage_begin(stage); round_ < program_.stage_end(stage); ++round_) {
        for (const Plan& plan : program_.plans) count_round(plan);
        if (unsettled_ != 0) program_.balanced = false;
      }
      if (unsettled_ != 0) program_.drained = false;
    }
    if (unsettled_ == 0) return {};
    for (std::uint32_t fifo = 0; fifo < open_.size(); ++fifo) {
      if (open_[fifo] != 0) return violation(fifo);
    }
    return {};
  }

 private:
  // Use of a cell by the steps of a round: its position in their operands.
  struct Use {
    std::uint32_t round = ~0u;
    std::uint32_t first = 0, count = 0, position = 0;
    bool written = false;
    bool at_several = false;  // Read at several positions.
  };

  void count_round(const Plan& plan) {
    const Rank self = plan.steps.self();
    for (std::uint32_t i = plan.rounds[round_]; i < plan.rounds[round_ + 1]; ++i) {
      const Step step = plan.steps[i];
      const Access* access = program_.accesses.data() + program_.first_access[self][i];
      for (std::size_t k = 0; k < step.sources.size(); ++k, ++access) count(*access, -1);
      for (std::size_t k = 0; k < step.targets.size(); ++k, ++access) count(*access, +1);
    }
  }

  void count(const Access& access, int change) {
    if (access.space < Space::lane) {
      if (program_.balanced) use_cells(access, change > 0);
      return;
    }
    int& open = open_[access.index];
    unsettled_ -= open != 0 ? 1 : 0;
    open += change;
    unsettled_ += open != 0 ? 1 : 0;
  }

  // Slices of the steps of a round alternate: slice s of one step may share a cell only with slice s of another.
  void use_cells(const Access& access, bool writes) {
    const std::uint32_t* cells = program_.cells.data() + access.index;
    for (std::uint32_t k = 0; k < access.owners * access.count; ++k) {
      Use& use = uses_[cells[k]];
      const std::uint32_t first = cells[k - k % access.count], position = k % access.count;
      if (use.round != round_) {
        use = {.round = round_, .first = first, .count = access.count, .position = position, .written = writes};
        continue;
      }
      const bool elsewhere = use.first != first || use.count != access.count || use.position != position;
      if ((elsewhere && (writes || use.written)) || (writes && use.at_several)) program_.balanced = false;
      use.written |= writes;
      use.at_several |= elsewhere;
    }
  }

  // Returns an error that names the last step at the end of the fifo that has too many uses.
  Status violation(std::uint32_t wanted) const {
    const Fifo& fifo = program_.fifos[wanted];
    const bool is_lane = fifo.space == Space::lane;
    const bool left_over = open_[wanted] > 0;
    const Plan& plan = program_.plans[left_over ? fifo.writer : fifo.reader];
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
      const Step step = plan.steps[i];
      const auto skipped = left_over ? step.sources.size() : 0;
      const Access* access = program_.accesses.data() + program_.first_access[plan.steps.self()][i] + skipped;
      const auto count = left_over ? step.targets.size() : step.sources.size();
      for (std::size_t k = 0; k < count; ++k) {
        if (access[k].space >= Space::lane && access[k].index == wanted) last = i;
      }
    }
    const std::string what = is_lane ? "message" : "signal";
    const std::string tag = " (tag " + std::to_string(fifo.tag) + ")";
    if (left_over) {
      return internal_error(describe_step(plan, last) + ": its " + what + " to rank " + std::to_string(fifo.reader) +
                            tag + " is never " + (is_lane ? "received" : "awaited"));
    }
    return internal_error(describe_step(plan, last) + ": blocked: waits for a " + what + " of rank " +
                          std::to_string(fifo.writer) + tag + " that is never sent");
  }

  CellProgram& program_;
  std::vector<int> open_;  // Messages sent minus messages received so far, by fifo.
  std::uint32_t unsettled_ = 0;
  std::uint32_t round_ = 0;
  std::vector<Use> uses_;
};

}  // namespace

Status check_balance(CellProgram& program) { return Balance(program).check(); }

}  // namespace tutti
