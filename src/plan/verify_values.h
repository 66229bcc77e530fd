// Symbolic values: expressions over the ranks' inputs, and what a collective demands of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/plan/verify_program.h"

namespace tutti {

// A number of Values; 0 is what nothing has written.
using Value = std::uint32_t;

// Expressions are made once and shared; equal ones of different ranks are told by their hash.
class Values {
 public:
  // A rank's input: `cell` counts from the first of its input. `run` tells chunks and operations apart.
  Value input(Rank rank, std::uint32_t cell, std::uint32_t run);
  // The caller's input as it lies in memory, before a step has read it; 0 if `value` is none. Reductions may scale what
  // they read as input, so there the two are not the same.
  Value read_input(Value value) const { return nodes_[value].untouched ? value + 1 : 0; }
  // left + right; 0 if they are of different cells or runs, so that no collective could want the sum.
  Value sum(Value left, Value right);
  // Mean square of the error, of one rounding of the value.
  double error(Value value) const { return nodes_[value].error / nodes_[value].inputs; }
  // The value as a message carries it that rounds; once rounded it stays so.
  Value rounded(Value value);
  // Marks what a step has just summed. False if it is not a sum of `ranks` contributions.
  bool complete(Value value, Rank ranks);

  std::uint64_t hash(Value value) const { return nodes_[value].hash; }
  std::string describe(Value value, const CellProgram& program) const;

  // Empty if `value` is the reduction of this input cell over all ranks, each once, and marked complete.
  std::string check_reduction(Value value, std::uint32_t cell, std::uint32_t run, Rank ranks);
  // Empty if `value` is this rank's input cell.
  std::string check_input(Value value, Rank rank, std::uint32_t cell, std::uint32_t run) const;

 private:
  struct Node {
    std::uint64_t hash = 0;
    Value left = 0, right = 0;  // 0, 0: an input.
    Rank rank = 0;              // Of an input.
    std::uint32_t cell = 0, run = 0;
    std::uint32_t inputs = 0;  // Leaves, counted as often as they are in.
    bool untouched = false;
    bool complete = false;
    bool checked = false;
    double error = 0;   // Mean square, of one rounding of an input.
    Value rounded = 0;  // Itself, where it is; 0: nobody has asked yet.
  };
  const Node& leftmost(Value value) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<Value> stack_;           // Of the walk in check_reduction().
  std::vector<std::uint32_t> counts_;  // How often each rank is in.
};

// What each rank's output must hold at its return.
class Postcondition {
 public:
  Postcondition(const CellProgram& program, Values& values, bool rounded)
      : program_(program),
        values_(values),
        rounded_(rounded),
        first_(program.width * std::size_t{program.plans[0].problem.ranks}) {}

  double rounded() const { return max_rounded_; }
  // `cell` counts from the first of the rank's output. Empty if right.
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
  std::vector<First> first_;  // Where all ranks return the same: which did so first, and with what.
};

}  // namespace tutti
