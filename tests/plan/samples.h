// Small algorithms for tests of src/plan, which has none.
#pragma once

#include <memory>

#include "src/plan/sequence.h"

namespace tutti::samples {

// Base class of samples, which support one collective with any number of ranks.
class Sample : public Algorithm {
 public:
  explicit Sample(Collective collective) : collective_(collective) {}
  const char* name() const override { return "sample"; }
  const char* summary() const override { return "for tests"; }
  bool supports(const Problem& problem) const override { return problem.collective == collective_; }
  CostLaw cost_law(const Problem&) const override { return {}; }

 private:
  Collective collective_;
};

class RingReduceScatter : public Sample {
 public:
  RingReduceScatter() : Sample(Collective::reduce_scatter) {}
  Shape shape(const Problem& problem) const override {
    return {.units = 1,
            .scratch = problem.ranks,
            .rounds = problem.ranks - 1 + (problem.ranks == 1 ? 1 : 0),
            .stages = {0}};
  }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (n == 1) return steps.copy(input(0), output(0));
    const Rank leaving = (self + n - 1 - round) % n;
    const Rank arriving = (leaving + n - 1) % n;
    const bool last = round + 2 == n;
    steps.send(round == 0 ? input(leaving) : scratch(leaving), (self + 1) % n);
    steps.reduce((self + n - 1) % n, input(arriving), last ? output(0) : scratch(arriving),
                 last ? Fold::complete : Fold::partial);
  }
};

class RingAllGather : public Sample {
 public:
  RingAllGather() : Sample(Collective::all_gather) {}
  Shape shape(const Problem& problem) const override {
    return {.units = 1, .scratch = 0, .rounds = problem.ranks - 1 + (problem.ranks == 1 ? 1 : 0), .stages = {0}};
  }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 0 && !problem.in_place) steps.copy(input(0), output(self));
    if (n == 1) return;
    const Rank leaving = (self + n - round) % n;
    steps.send(output(leaving), (self + 1) % n);
    steps.recv((self + n - 1) % n, output((leaving + n - 1) % n));
  }
};

class DirectReduceScatter : public Sample {
 public:
  DirectReduceScatter() : Sample(Collective::reduce_scatter) {}
  Shape shape(const Problem&) const override { return {.units = 1, .scratch = 0, .rounds = 2, .stages = {0, 1}}; }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    std::vector<Operand> sources;
    for (Rank rank = 0; rank < n; ++rank) {
      if (round == 0 && rank != self) steps.send(input(rank), rank);
      sources.push_back(rank == self ? input(self) : lane(rank, 1));
    }
    const Operand target = output(0);
    if (round == 1) steps.add(sources, {&target, 1}, n > 1 ? Fold::complete : Fold::partial);
  }
};

class DirectAllGather : public Sample {
 public:
  DirectAllGather() : Sample(Collective::all_gather) {}
  Shape shape(const Problem&) const override { return {.units = 1, .scratch = 0, .rounds = 2, .stages = {0, 1}}; }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    std::vector<Operand> targets;
    if (!problem.in_place) targets.push_back(output(self));
    for (Rank rank = 0; rank < problem.ranks; ++rank) {
      if (rank == self) continue;
      if (round == 1) steps.recv(rank, output(rank));
      targets.push_back(lane(rank, 1));
    }
    const Operand source = input(0);
    if (round == 0 && !targets.empty()) steps.add({&source, 1}, targets);
  }
};

// An all-reduce as a reduce-scatter followed by an all-gather.
class AllReduce : public Sequence {
 public:
  AllReduce(const Algorithm& first, const Algorithm& second, std::uint16_t second_tag = 0)
      : first_(first), second_(second), second_tag_(second_tag) {}
  const char* name() const override { return "sample"; }
  const char* summary() const override { return "for tests"; }
  bool supports(const Problem& problem) const override { return problem.collective == Collective::all_reduce; }
  CostLaw cost_law(const Problem&) const override { return {}; }
  std::shared_ptr<const Composition> compose(const Problem& problem) const override {
    auto composition = std::make_shared<Composition>();
    Part part;
    part.algorithm = &first_;
    part.problem = problem;
    part.problem.groups.clear();
    part.problem.collective = Collective::reduce_scatter;
    for (Rank rank = 0; rank < problem.ranks; ++rank) part.members.push_back(rank);
    for (Rank rank = 0; rank <= problem.ranks; ++rank) part.cuts.push_back(rank);
    part.fold = Fold::complete;
    composition->units = problem.ranks;
    composition->scratch = first_.shape(part.problem).scratch;
    composition->stages.push_back({part});
    part.algorithm = &second_;
    part.problem.collective = Collective::all_gather;
    part.input = Space::output;
    part.tag = second_tag_;
    composition->stages.push_back({part});
    return composition;
  }

 private:
  const Algorithm& first_;
  const Algorithm& second_;
  std::uint16_t second_tag_;
};

// Broadcast from rank 0 along a binary tree.
class TreeBroadcast : public Sample {
 public:
  TreeBroadcast() : Sample(Collective::broadcast) {}
  Shape shape(const Problem&) const override { return {.units = 1, .scratch = 0, .rounds = 1, .stages = {0}}; }
  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    if (self == 0 && !problem.in_place) steps.copy(input(0), output(0));
    if (self > 0) steps.recv((self - 1) / 2, output(0));
    for (Rank child = 2 * self + 1; child <= 2 * self + 2 && child < problem.ranks; ++child)
      steps.send(output(0), child);
  }
};

// All-reduce in which each rank sends its block to all others, and folds in the order of ranks.
class OneShot : public Sample {
 public:
  OneShot() : Sample(Collective::all_reduce) {}
  Shape shape(const Problem&) const override { return {.units = 1, .scratch = 0, .rounds = 1, .stages = {0}}; }
  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    std::vector<Operand> sources;
    for (Rank rank = 0; rank < problem.ranks; ++rank) {
      if (rank != self) steps.send(input(0), rank);
      sources.push_back(rank == self ? input(0) : lane(rank, 1));
    }
    const Operand target = output(0);
    steps.add(sources, {&target, 1}, Fold::complete);
  }
};

// A wrong all-reduce: each rank stores its input into all ranks' scratch and folds the received inputs, but does not
// wait until peers have read the values of the previous operation.
class PushAllReduce : public Sample {
 public:
  PushAllReduce() : Sample(Collective::all_reduce) {}
  Shape shape(const Problem& problem) const override {
    return {.units = 1, .scratch = problem.ranks, .rounds = 2, .stages = {0}};
  }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    std::vector<Operand> copies, flags, sources;
    for (Rank rank = 0; rank < problem.ranks; ++rank) {
      sources.push_back(rank == self ? input(0) : scratch(rank));
      if (rank == self) continue;
      copies.push_back(at(rank, scratch(self)));
      flags.push_back(flag(rank));
    }
    const Operand own = input(0);
    const Operand target = output(0);
    if (round == 1) return steps.add(sources, {&target, 1}, Fold::complete);
    steps.add({&own, 1}, copies);
    steps.add({}, flags);
    steps.add(flags, {});
  }
};

// All-reduce in peers' memory: each rank folds its unit of all ranks' inputs in rank order, and stores the result into
// all ranks' outputs. Flags at begin and end keep ranks out of memory that callers own.
class MappedAllReduce : public Sample {
 public:
  MappedAllReduce() : Sample(Collective::all_reduce) {}
  Shape shape(const Problem& problem) const override {
    return {.units = problem.ranks, .scratch = 0, .rounds = 3, .stages = {0}};
  }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    std::vector<Operand> flags, sources, targets;
    for (Rank rank = 0; rank < problem.ranks; ++rank) {
      if (rank != self) flags.push_back(flag(rank));
      sources.push_back(at(rank, input(self)));
      targets.push_back(at(rank, output(self)));
    }
    if (round == 1) return steps.add(sources, targets, Fold::complete);
    steps.add({}, flags);
    steps.add(flags, {});
  }
};

// All-reduce in peers' scratch, as three stages: each rank copies its input into its scratch, folds its unit of all
// ranks' scratch into a second unit of all ranks' scratch, and copies the result to its output.
class StagedAllReduce : public Sample {
 public:
  StagedAllReduce() : Sample(Collective::all_reduce) {}
  Shape shape(const Problem& problem) const override {
    return {.units = problem.ranks, .scratch = 2 * problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    std::vector<Operand> flags, sources, targets;
    for (Rank rank = 0; rank < n; ++rank) {
      if (rank != self) flags.push_back(flag(rank));
      sources.push_back(at(rank, scratch(self)));
      targets.push_back(at(rank, scratch(n + self)));
    }
    if (round == 0) steps.copy(input(0, n), scratch(0, n));
    if (round > 0) steps.add(flags, {});
    if (round == 1) steps.add(sources, targets, Fold::complete);
    if (round < 2) steps.add({}, flags);
    if (round == 2) steps.copy(scratch(n, n), output(0, n));
  }
};

inline Problem problem(Collective collective, Rank ranks, bool in_place = false) {
  return {.collective = collective, .ranks = ranks, .root = 0, .in_place = in_place, .groups = {}};
}

}  // namespace tutti::samples
