// A plan prepared for one rank: steps bound to the ends of lanes. Plain data, read by host and device.
#pragma once

#include <cstdint>
#include <span>

#include "src/executor/lane_io.h"
#include "src/plan/layout.h"
#include "src/plan/loop.h"
#include "src/plan/step.h"

namespace tutti {

struct Instruction {
  std::uint32_t first = 0;  // First operand; sources precede targets.
  std::uint16_t sources = 0;
  std::uint16_t targets = 0;
  Fold fold = Fold::partial;
  std::uint8_t flags_only = 0;  // Neither reads nor writes data.
  std::uint8_t flags = 0;       // 1: waits for or signals flags.
  std::uint8_t reserved = 0;
};
static_assert(sizeof(Instruction) == 12);

struct Program {
  const Instruction* steps = nullptr;
  // For lanes and flags, `first` is the index of the lane's end. For scratch of all ranks, the peer is their number.
  const Operand* operands = nullptr;
  const std::uint32_t* rounds = nullptr;  // Round r is steps [rounds[r], rounds[r + 1]).
  const std::uint32_t* stages = nullptr;  // Stage s is rounds [stages[s], stages[s + 1]).
  LaneState* const* lanes = nullptr;      // Shared by all programs of a channel: lanes outlive plans.
  std::uint32_t stage_count = 0;
  std::uint32_t units = 1;
  std::uint32_t widest = 0;  // Maximum operands on one side of a step.

  // On the host only.
  std::span<const Instruction> all_steps() const { return {steps, rounds[stages[stage_count]]}; }
  std::span<const Instruction> steps_of(std::uint32_t stage) const {
    return {steps + rounds[stages[stage]], steps + rounds[stages[stage + 1]]};
  }
  std::span<const Instruction> steps_of_round(std::uint32_t round) const {
    return {steps + rounds[round], steps + rounds[round + 1]};
  }
  std::span<const Operand> operands_of(const Instruction& step) const {
    return {operands + step.first, std::size_t{step.sources} + step.targets};
  }
  std::span<const Operand> sources_of(const Instruction& step) const { return operands_of(step).first(step.sources); }
  std::span<const Operand> targets_of(const Instruction& step) const { return operands_of(step).last(step.targets); }
};
static_assert(sizeof(Program) == 56);

// One rank's buffers.
struct RankBuffers {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
};
static_assert(sizeof(RankBuffers) == 24);

}  // namespace tutti
