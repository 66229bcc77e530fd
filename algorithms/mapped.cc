// Collectives in mapped memory: each rank makes one step, between a round of entry flags and a round of exit flags.
// Entry flags: all inputs are valid, and all outputs may be written. Exit flags: all inputs are read, and all outputs
// are written.
//
// direct_mapped and two_shot_mapped access the memory of each peer, without a copy:
//   all-gather      each rank stores its block into every output: (n-1)/n S beta
//   reduce-scatter  each rank reduces its block from all inputs, in rank order: (n-1)/n S beta read
//   all-reduce      both, with the rank's unit of the block: 2(n-1)/n S beta. The reader of a cache line is its next
//                   writer, which suits host caches. In place, only rank r accesses unit r between entry and exit.
//
// switch_mapped accesses the memory of all ranks at once: switches add what they read, and multicast what is stored
// (NCCL: NVLS with registered buffers). Its cost law is that of the algorithm without switches. With
// switches, a rank's own part passes its port, too:
//   all-gather      S/n beta sent, S beta received
//   reduce-scatter  S beta sent, S/n beta received
//   all-reduce      (1 + 1/n) S beta in each direction
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class Mapped : public Entry<Algorithm> {
 public:
  Mapped(Collective collective, const char* name, const char* summary, PeerAccess access)
      : Entry(collective, name, summary), access_(access) {}

  Shape shape(const Problem& problem) const override {
    return {.units = units_of(problem), .rounds = 3, .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const double n = problem.ranks, others = problem.collective == Collective::all_reduce ? 1 - 1.0 / n : n - 1;
    const bool reads = reduces(problem.collective), stores = problem.collective != Collective::reduce_scatter;
    CostLaw cost_law = in_peers_memory(problem, stores ? others : 0, reads ? others : 0);
    if (reads) cost_law.folded = others;
    else cost_law.copied = 1;
    cost_law.units = units_of(problem);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 0 && n > 1) steps.add({}, flags);
    if (round == 2 && n > 1) steps.add(flags, {});
    if (round != 1) return;
    std::vector<Operand> sources = flags, targets = stored_by(self, problem);
    for (const Operand& data : read_by(self, problem)) sources.push_back(data);
    targets.insert(targets.end(), flags.begin(), flags.end());
    if (!targets.empty()) steps.add(sources, targets, reduces(problem.collective) ? Fold::complete : Fold::partial);
  }

 private:
  std::vector<Operand> read_by(Rank self, const Problem& problem) const {
    if (!reduces(problem.collective)) return {input(0)};
    if (access_ == PeerAccess::switches) return {all(input(self))};
    std::vector<Operand> inputs;
    for (Rank rank = 0; rank < problem.ranks; ++rank) inputs.push_back(at(rank, input(self)));
    return inputs;
  }

  std::vector<Operand> stored_by(Rank self, const Problem& problem) const {
    if (problem.collective == Collective::reduce_scatter) return {output(0)};
    if (access_ == PeerAccess::switches) return {all(output(self))};
    const Rank n = problem.ranks;
    const bool has_own = problem.in_place && problem.collective == Collective::all_gather;
    std::vector<Operand> outputs;
    for (Rank i = has_own ? 1 : 0; i < n; ++i) outputs.push_back(at((self + i) % n, output(self)));
    return outputs;
  }

  static std::uint32_t units_of(const Problem& problem) {
    return problem.collective == Collective::all_reduce ? problem.ranks : 1;
  }

  PeerAccess access_;
};

}  // namespace

const Algorithm& direct_mapped_all_gather() {
  static const Mapped algorithm(Collective::all_gather, "direct_mapped",
                                "each rank stores its block in the memory of all peers, (n-1)/n S",
                                PeerAccess::each_peer);
  return algorithm;
}

const Algorithm& direct_mapped_reduce_scatter() {
  static const Mapped algorithm(Collective::reduce_scatter, "direct_mapped",
                                "each rank reduces its block from the memory of all peers, (n-1)/n S",
                                PeerAccess::each_peer);
  return algorithm;
}

const Algorithm& two_shot_mapped_all_reduce() {
  static const Mapped algorithm(Collective::all_reduce, "two_shot_mapped",
                                "each rank reduces a share and stores it in the memory of all peers, 2(n-1)/n S",
                                PeerAccess::each_peer);
  return algorithm;
}

const Algorithm& switch_mapped_all_gather() {
  static const Mapped algorithm(Collective::all_gather, "switch_mapped",
                                "switches store the block of each rank in the outputs of all, S into each rank",
                                PeerAccess::switches);
  return algorithm;
}

const Algorithm& switch_mapped_reduce_scatter() {
  static const Mapped algorithm(Collective::reduce_scatter, "switch_mapped",
                                "switches add the inputs of all ranks, S out of each rank", PeerAccess::switches);
  return algorithm;
}

const Algorithm& switch_mapped_all_reduce() {
  static const Mapped algorithm(Collective::all_reduce, "switch_mapped",
                                "switches add the inputs of all ranks and store the sums to all outputs, (1 + 1/n) S",
                                PeerAccess::switches);
  return algorithm;
}

}  // namespace tutti
