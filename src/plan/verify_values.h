// Symbolic values: expressions over the inputs of ranks, and the results that a collective requires.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/plan/verify_program.h"

namespace tutti {

// Index in Values; 0 is the value of unwritten memory.
using Value = std::uint32_t;

// Each expression is made once and shared. Equal expressions of different ranks have equal hashes.
class Values {
 public:
  // Returns the input of a rank. `cell` counts from the first cell of its input. `run` identifies chunk and operation.
  Value input(Rank rank, std::uint32_t cell, std::uint32_t run);
  // Returns the value that a step reads if memory holds the caller's input `value`; 0 if `value` is not an unread
  // input. Reductions may scale their input when they read it, so the two values differ.
  Value read_input(Value value) const { return nodes_[value].untouched ? value + 1 : 0; }
  // Returns left + right; 0 if the two belong to different cells or runs, since no collective needs such a sum.
  Value sum(Value left, Value right);
  // Returns a sum whose terms a step of a rank added in an unknown order. It has the bits of no other step's sum.
  Value in_unknown_order(Value sum, Rank rank, std::uint32_t step);
  // Returns the mean square error, relative to rounding the value once.
  double error(Value value) const { return nodes_[value].error / nodes_[value].inputs; }
  // Returns the value as a compressed message carries it. A rounded value stays unchanged.
  Value rounded(Value value);
  // Marks the result of a fold as complete. Returns false if it is not a sum of `ranks` contributions.
  bool complete(Value value, Rank ranks);

  std::uint64_t hash(Value value) const { return nodes_[value].hash; }
  std::string describe(Value value, const CellProgram& program) const;

  // Returns an error unless `value` is the complete reduction of this input cell, with each rank once. Empty: correct.
  std::string check_reduction(Value value, std::uint32_t cell, std::uint32_t run, Rank ranks);
  // Returns an error unless `value` is this input cell of the rank. Empty: correct.
  std::string check_input(Value value, Rank rank, std::uint32_t cell, std::uint32_t run) const;

 private:
  struct Node {
    std::uint64_t hash = 0;
    Value left = 0, right = 0;  // Both 0 for an input.
    Rank rank = 0;              // Rank of an input.
    std::uint32_t cell = 0, run = 0;
    std::uint32_t inputs = 0;  // Leaves, with repetitions.
    bool untouched = false;
    bool complete = false;
    bool checked = false;
    double error = 0;   // Mean square error, relative to rounding an input once.
    Value rounded = 0;  // The rounded value; its own index if already rounded; 0: not yet computed.
  };
  const Node& leftmost(Value value) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<Value> stack_;           // Stack of the walk in check_reduction().
  std::vector<std::uint32_t> counts_;  // Occurrences of each rank.
};

// The required content of each rank's output at its return.
class Postcondition {
 public:
  Postcondition(const CellProgram& program, Values& values, bool rounded)
      : program_(program),
        values_(values),
        rounded_(rounded),
        first_(program.width * std::size_t{program.plans[0].problem.ranks}) {}

  double rounded() const { return max_rounded_; }
  // Returns an error, or an empty string if the value is correct. `cell` counts from the first cell of the rank's
  // output.
  std::string check(Rank rank, std::uint32_t cell, Value value, std::uint32_t run);

 private:
  struct First {
    Value value = 0;
    Rank rank = 0;
  };
  std::string check_same(Rank rank, std::uint32_t cell, Value value);

  const CellProgram& program_;
  Values& values_;
  const bool rounded_;
  double max_rounded_ = 0;
  std::vector<First> first_;  // If all ranks return the same values: the first rank to return each cell, and its value.
};

}  // namespace tutti
