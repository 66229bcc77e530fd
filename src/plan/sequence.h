// Algorithms made of algorithms: stages one after the other, each a set of parts that advance round by round
// together. Ring all-reduce is a reduce-scatter, then an all-gather, from the same untouched files.
#pragma once

#include <array>
#include <memory>

#include "src/plan/algorithm.h"

namespace tutti {

// A sub-problem of a composition. Its rank r is the parent's rank members[r]; its unit i (counted over all blocks)
// is the parent's units [cuts[i], cuts[i + 1]). A sub-problem's single block (reduce_scatter's output, all_gather's
// input, scatter's output, gather's input) lies at the rank's own block, as in place.
struct Part {
  const Algorithm* algorithm = nullptr;
  Problem problem;  // in_place is derived: input == output, or the parent is in place.
  std::vector<Rank> members;
  std::vector<std::uint32_t> cuts;
  Place input = Place::input;  // Where the sub-problem's input lies in the parent; its output likewise.
  Place output = Place::output;
  // The part's scratch unit s is as long as its unit s, and lies in the parent's scratch at `scratch` + cuts[s]; past
  // the last cut it goes on in the next whole blocks. So parts with disjoint cuts may share one area.
  std::uint32_t scratch = 0;  // A multiple of the parent's units.
  std::uint16_t tag = 0;      // Parts that connect the same two ranks need tags of their own, or deadlock.
  Fold fold = Fold::partial;  // Whether a fold that is complete in the part is complete in the parent.
};

// Who is in which parts of a composition, and how many rounds these take.
class SequenceMembers;

struct Composition {
  std::uint32_t units = 1;  // Per block of the parent.
  std::uint32_t scratch = 0;
  std::vector<std::vector<Part>> stages;
  // [of a problem in place]: made by Sequence when a rank's steps are first asked for, so that nobody goes through the
  // parts of thousands of hosts for each round of a rank. Read and written atomically.
  mutable std::array<std::shared_ptr<const SequenceMembers>, 2> membership{};
};

class Sequence : public Algorithm {
 public:
  // The parts for a problem that supports() accepts. Called often: cheap, or cached by the implementation.
  virtual std::shared_ptr<const Composition> compose(const Problem& problem) const = 0;

  Shape shape(const Problem& problem) const override;
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override;
};

}  // namespace tutti
