// Plans with one defect, like mistakes of an author; a few are still correct.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "src/plan/plan.h"

namespace tutti::test {

enum class Mutation : std::uint8_t {
  drop_step,
  repeat_step,
  swap_steps,
  receive_first,
  change_unit,
  change_peer,
  change_tag,
  copy_for_fold,
  fold_for_copy,
  swap_sources,
  drop_flag,
  flip_fold,
};
inline constexpr std::uint32_t kMutations = 12;
const char* name(Mutation mutation);

// The plans with one rank's plan changed (receive_first: all ranks'); nothing if the draw finds no place for such a
// change.
std::optional<std::vector<Plan>> mutant(const std::vector<Plan>& plans, Mutation mutation, std::mt19937_64& random);

// Whether such a defect can cause such an error of the verifier.
bool explains(Mutation mutation, const std::string& violation);

}  // namespace tutti::test
