// Algorithms composed of other algorithms: consecutive stages, each a set of parts that advance together round by
// round. For example, ring all-reduce is a ring reduce-scatter followed by a ring all-gather.
#pragma once

#include <array>
#include <memory>

#include "src/plan/algorithm.h"

namespace tutti {

// A sub-problem of a composition. Its rank r is the parent's rank members[r]. Its unit i (counted over all blocks) is
// the parent's units [cuts[i], cuts[i + 1]). If a sub-problem has a single block (the output of reduce_scatter and
// scatter, the input of all_gather and gather), this block lies at the rank's own block, as in place.
struct Part {
  const Algorithm* algorithm = nullptr;
  Problem problem;  // in_place is derived: true if input == output, or if the parent is in place.
  std::vector<Rank> members;
  std::vector<std::uint32_t> cuts;
  Space input = Space::input;    // Location of the sub-problem's input in the parent.
  Space output = Space::output;  // Location of the sub-problem's output in the parent.
  // The part's scratch unit s is as long as its unit s. It lies in the parent's scratch at `scratch` + cuts[s]. Units
  // beyond the last cut continue in the next whole blocks. Parts with disjoint cuts may therefore share one area.
  std::uint32_t scratch = 0;  // A multiple of the parent's units.
  std::uint16_t tag = 0;      // Parts that connect the same two ranks need different tags, or they deadlock.
  Fold fold = Fold::partial;  // Whether a complete fold of the part is complete in the parent.
};

// The parts in which each rank is a member, and the rounds of these parts.
class SequenceMembers;

struct Composition {
  std::uint32_t units = 1;  // Per block of the parent.
  std::uint32_t scratch = 0;
  std::vector<std::vector<Part>> stages;
  // Cached memberships, indexed by Problem::in_place. Sequence builds an entry at its first use, so that no rank walks
  // the parts of thousands of hosts in every round. Read and written atomically.
  mutable std::array<std::shared_ptr<const SequenceMembers>, 2> membership{};
};

class Sequence : public Algorithm {
 public:
  // Returns the parts for a problem that supports() accepts. Called often: must be cheap or cached by the
  // implementation.
  virtual std::shared_ptr<const Composition> compose(const Problem& problem) const = 0;

  Shape shape(const Problem& problem) const override;
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override;
};

}  // namespace tutti
