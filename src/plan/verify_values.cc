#include "src/plan/verify_values.h"

#include <algorithm>

namespace tutti {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 7) + (a >> 3))) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
  return x ^ (x >> 32);
}

// Bounds the count of inputs: incorrect plans may double a sum repeatedly.
constexpr std::uint32_t kManyInputs = 1u << 30;

}  // namespace

Value Values::input(Rank rank, std::uint32_t cell, std::uint32_t run) {
  const Node node{.hash = mix(rank + 1, cell), .rank = rank, .cell = cell, .run = run, .inputs = 1};
  nodes_.push_back(node);
  nodes_.back().untouched = true;
  nodes_.push_back(node);
  return static_cast<Value>(nodes_.size() - 2);
}

Value Values::sum(Value left, Value right) {
  const Node& a = nodes_[left];
  const Node& b = nodes_[right];
  if (a.cell != b.cell || a.run != b.run) return 0;
  const Node node{.hash = mix(a.hash, b.hash),
                  .left = left,
                  .right = right,
                  .rank = 0,
                  .cell = a.cell,
                  .run = a.run,
                  .inputs = std::min(a.inputs + b.inputs, kManyInputs),
                  .error = a.error + b.error};
  nodes_.push_back(node);
  return static_cast<Value>(nodes_.size() - 1);
}

Value Values::in_unknown_order(Value sum, Rank rank, std::uint32_t step) {
  Node node = nodes_[sum];
  node.hash = mix(mix(node.hash, 3 + step), rank);
  nodes_.push_back(node);
  return static_cast<Value>(nodes_.size() - 1);
}

Value Values::rounded(Value value) {
  if (nodes_[value].rounded == 0) {
    Node node = nodes_[value];
    node.hash = mix(node.hash, 2);
    node.untouched = false;
    node.error += node.inputs;
    nodes_[value].rounded = node.rounded = static_cast<Value>(nodes_.size());
    nodes_.push_back(node);
  }
  return nodes_[value].rounded;
}

bool Values::complete(Value value, Rank ranks) {
  Node& node = nodes_[value];
  if (node.inputs != ranks) return false;
  if (!node.complete) node.hash = mix(node.hash, 1);
  node.complete = true;
  return true;
}

const Values::Node& Values::leftmost(Value value) const {
  while (nodes_[value].left != 0) value = nodes_[value].left;
  return nodes_[value];
}

std::string Values::describe(Value value, const CellProgram& program) const {
  const Node& leaf = leftmost(value);
  const std::uint32_t unit =
      leaf.cell / program.width * program.plans[0].shape.units + program.class_unit[leaf.cell % program.width];
  const std::string origin = "input[" + std::to_string(unit) + "] of rank " + std::to_string(leaf.rank);
  return nodes_[value].left == 0 ? origin
                                 : "a sum of " + std::to_string(nodes_[value].inputs) + " that begins with " + origin;
}

std::string Values::check_reduction(Value value, std::uint32_t cell, std::uint32_t run, Rank ranks) {
  Node& whole = nodes_[value];
  if (whole.cell != cell) return "holds another unit's reduction";
  if (whole.run != run) return "holds a value of another chunk or operation";
  if (!whole.checked) {
    // Ranks share sums, so each sum is walked once. The first doubled input ends the walk, which keeps it short.
    counts_.assign(ranks, 0);
    stack_.assign(1, value);
    while (!stack_.empty()) {
      const Node& node = nodes_[stack_.back()];
      stack_.pop_back();
      if (node.left == 0) {
        if (++counts_[node.rank] > 1)
          return "doubled: rank " + std::to_string(node.rank) + "'s contribution is included more than once";
      } else {
        stack_.push_back(node.left);
        stack_.push_back(node.right);
      }
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (counts_[rank] == 0) return "missing: rank " + std::to_string(rank) + "'s contribution is not included";
    }
    whole.checked = true;
  }
  if (ranks > 1 && !whole.complete) return "holds the whole reduction, but no fold of it is marked complete";
  return "";
}

std::string Values::check_input(Value value, Rank rank, std::uint32_t cell, std::uint32_t run) const {
  const Node& node = nodes_[value];
  if (node.left != 0) return "doubled: holds a sum of " + std::to_string(node.inputs) + " contributions";
  if (node.rank != rank || node.cell != cell) {
    return "missing: should hold rank " + std::to_string(rank) + "'s contribution, holds another of rank " +
           std::to_string(node.rank);
  }
  if (node.run != run) return "holds a value of another chunk or operation";
  return "";
}

std::string Postcondition::check_same(Rank rank, std::uint32_t cell, Value value) {
  First& first = first_[cell];
  if (first.value == 0) first = {.value = value, .rank = rank};
  if (values_.hash(first.value) == values_.hash(value)) return "";
  const bool sum = reduces(program_.plans[0].problem.collective);
  const char* why = !rounded_ ? "the additions have another order"
                    : sum     ? "the additions have another order, or are rounded at other positions"
                              : "only one of the two is rounded";
  return "other bits than on rank " + std::to_string(first.rank) + ": " + why;
}

std::string Postcondition::check(Rank rank, std::uint32_t cell, Value value, std::uint32_t run) {
  const Problem& problem = program_.plans[0].problem;
  const bool untouched = reduces(problem.collective) && values_.read_input(value) != 0;
  if (value == 0 || untouched) return "missing: no step has written it";
  max_rounded_ = std::max(max_rounded_, values_.error(value));
  const std::uint32_t width = program_.width;
  switch (problem.collective) {
    case Collective::reduce:
    case Collective::all_reduce: {
      std::string violation = values_.check_reduction(value, cell, run, problem.ranks);
      if (!violation.empty() || problem.collective == Collective::reduce) return violation;
      return check_same(rank, cell, value);
    }
    case Collective::reduce_scatter: return values_.check_reduction(value, rank * width + cell, run, problem.ranks);
    case Collective::all_gather:
    case Collective::gather:
    case Collective::broadcast: {
      const bool one = problem.collective == Collective::broadcast;
      std::string violation =
          values_.check_input(value, one ? problem.root : cell / width, one ? cell : cell % width, run);
      const bool in_place = values_.read_input(value) != 0;
      if (!violation.empty() || !rounded_ || in_place || problem.collective == Collective::gather) return violation;
      return check_same(rank, cell, value);
    }
    case Collective::scatter: return values_.check_input(value, problem.root, rank * width + cell, run);
    case Collective::all_to_all: return values_.check_input(value, cell / width, rank * width + cell % width, run);
  }
  return "";
}

}  // namespace tutti
