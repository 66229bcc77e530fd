// A team's Machine for calls whose messages are narrower than their elements: in bulk, and never in peers' memory.
#pragma once

#include "src/executor/team/machine.h"
#include "src/executor/team/narrow_fold.h"

namespace tutti {

template <typename Team>
class NarrowMachine : public TeamMachine<Team> {
 public:
  TUTTI_HOST_DEVICE NarrowMachine(Team team, const TeamMemory& memory, const Image& image, const TeamCall& call)
      : TeamMachine<Team>(team, memory, image, call),
        keeps_(image.launch.keeps),
        rounding_(reinterpret_cast<TeamRounding*>(memory.marks)),
        sources_(reinterpret_cast<NarrowOperand*>(memory.marks + sizeof(TeamRounding))),
        targets_(sources_ + image.widest + 1) {
    if (team.worker() == 0) find_rounding(call.rounding, image.launch);
  }

  // The call is done on this channel.
  TUTTI_HOST_DEVICE void end() {
    if (this->crew().worker == 0 && rounding_->runs != nullptr) ++*rounding_->runs;
  }

  TUTTI_HOST_DEVICE static constexpr bool plain() { return false; }

  // There are none: see DeviceCommunicator::protocol_of().
  TUTTI_HOST_DEVICE static Progress receive_small(const LaneState&, Signature, std::uint64_t, std::uint32_t,
                                                  std::byte*&, Blocked&) {
    return Progress::mismatch;
  }
  TUTTI_HOST_DEVICE static void send_small(const LaneState&, Signature, const std::byte*, std::uint64_t) {}

  // Of a lane.
  TUTTI_HOST_DEVICE void source(std::uint32_t index, std::byte* pointer) {
    TeamMachine<Team>::source(index, pointer);
    sources_[index] = NarrowOperand::message;
  }
  TUTTI_HOST_DEVICE void source(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    TeamMachine<Team>::source(index, pointer, operand);
    sources_[index] = kind_of(operand);
  }
  TUTTI_HOST_DEVICE void target(std::uint32_t index, std::byte* pointer) {
    TeamMachine<Team>::target(index, pointer);
    targets_[index] = NarrowOperand::message;
  }
  TUTTI_HOST_DEVICE void target(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    TeamMachine<Team>::target(index, pointer);
    targets_[index] = kind_of(operand);
  }

  TUTTI_HOST_DEVICE void fold(std::uint32_t sources, std::uint32_t targets, std::uint64_t count, Fold kind) {
    const FoldOperands operands = this->operands(sources, targets, count, kind);
    const NarrowMarks marks = {sources_, targets_};
    if (rounding_->asks()) return narrow_fold(this->task(), keeps_, operands, marks, this->crew(), *rounding_);
    narrow_fold(this->task(), keeps_, operands, marks, this->crew());
  }

 private:
  // The others see it when they agree on the first step.
  TUTTI_HOST_DEVICE void find_rounding(const TeamRounding* asked, const Launch& launch) {
    *rounding_ = asked == nullptr ? TeamRounding{} : *asked;
    rounding_->begins[0] = launch.self.input;
    rounding_->begins[1] = launch.self.output;
    rounding_->begins[2] = launch.scratch;
    if (rounding_->runs == nullptr) return;
    rounding_->runs += launch.channel;
    rounding_->key = key_of_run(rounding_->key, *rounding_->runs);
  }

  TUTTI_HOST_DEVICE static NarrowOperand kind_of(const Operand& operand) {
    if (!operand.is_memory()) return NarrowOperand::message;
    if (operand.place == Place::input) return NarrowOperand::own_input;
    return operand.place == Place::output ? NarrowOperand::output : NarrowOperand::scratch;
  }

  Keeps keeps_;
  TeamRounding* rounding_;  // Shared by the team.
  NarrowOperand* sources_;  // Of the next fold.
  NarrowOperand* targets_;
};

}  // namespace tutti
