// Plans with one random defect, like a mistake of an author. A few mutants are still correct.
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

// Returns the plans with a mutation in one rank's plan (receive_first: in all ranks' plans). Returns nothing if the
// random choice finds no target for the mutation.
std::optional<std::vector<Plan>> mutant(const std::vector<Plan>& plans, Mutation mutation, std::mt19937_64& random);

// Returns true if the mutation can cause this error of the verifier.
bool explains(Mutation mutation, const std::string& violation);

}  // namespace tutti::test
