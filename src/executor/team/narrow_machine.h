// A team's Machine for calls whose messages are narrower than their elements: in bulk, and never in peers' memory.
#pragma once

#include "src/executor/team/machine.h"
#include "src/executor/team/narrow_fold.h"

namespace tutti {

template <typename Team>
class NarrowMachine : public TeamMachine<Team> {
 public:
  TUTTI_HOST_DEVICE NarrowMachine(Team team, const TeamMemory& memory, const Image& image)
      : TeamMachine<Team>(team, memory, image),
        keeps_(image.launch.keeps),
        sources_(reinterpret_cast<NarrowOperand*>(memory.marks)),
        targets_(sources_ + image.widest + 1) {}

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
    narrow_fold(this->task(), keeps_, this->operands(sources, targets, count, kind), {sources_, targets_},
                this->crew());
  }

 private:
  TUTTI_HOST_DEVICE static NarrowOperand kind_of(const Operand& operand) {
    if (!operand.is_memory()) return NarrowOperand::message;
    return operand.place == Place::input ? NarrowOperand::own_input : NarrowOperand::memory;
  }

  Keeps keeps_;
  NarrowOperand* sources_;  // Of the next fold.
  NarrowOperand* targets_;
};

}  // namespace tutti
