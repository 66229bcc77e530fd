// Descriptions of the commands about plans: plan and verify.
#include "tools/tutti/names.h"
#include "tools/tutti/options.h"

namespace tutti::tool {

Command describe_plan() {
  return {
      .name = "plan",
      .summary = "print what each rank does in an algorithm, step by step",
      .usage = "--collective NAME --algorithm NAME (--ranks N | --groups LAYOUT) [options]",
      .description =
          "Prints the plan of one algorithm: the sends, receives, reductions and copies of each rank, in the "
          "order in which the rank runs them. Runs nothing.",
      .options = {collective_row(kRequired),
                  {"algorithm", kAlgorithm, "NAME", kRequired,
                   "Algorithm; the list below has those of each collective."},
                  {"ranks", kRanks, "N", "sum of --groups",
                   "Number of ranks, 1 to 1024; up to 65536 with --rank and neither --fused nor --dot."},
                  groups_row("one host", "One layout."),
                  {"rank", kRank, "R", "all ranks", "Print the plan of rank R only."},
                  {"root", kRoot, "R", "0", "Root rank of broadcast, reduce, gather or scatter."},
                  {"in-place", kInPlace, nullptr, "",
                   "Plan for input and output in one buffer. Without it they are separate buffers."},
                  {"fused", kFused, nullptr, "",
                   "Print the plan as it runs, after adjacent steps were merged (such as a receive, a reduction and a "
                   "send). Without it: as the algorithm emits it."},
                  {"dot", kDot, nullptr, "", "Print a graph in the DOT language of Graphviz instead of text."}},
      .examples = {"tutti plan --collective all_reduce --algorithm ring --ranks 4",
                   "tutti plan --collective broadcast --algorithm chain --ranks 4 --dot | dot -Tsvg"},
      .environment = "no variable has an effect.",
      .appendix = "Algorithms of each collective:" + all_algorithms() + "\n"};
}

Command describe_verify() {
  return {.name = "verify",
          .summary = "prove that plans are correct: results, no deadlock, no race",
          .usage = "(--all | --collective NAME | --algorithm NAME) (--ranks LIST | --groups LAYOUTS)",
          .description =
              "Proves plans: every contribution is reduced exactly once, all ranks get the same bits, and no "
              "schedule has a deadlock or a race. For each number of ranks, it proves the first, middle and last "
              "root, in place and out of place, as emitted and as fused. Prints a row per algorithm: problems "
              "(root and place), proofs (fused or not), messages over all proofs, slots (the most receive slots "
              "that a proof needs), failures and seconds.",
          .options = {{"all", kAll, nullptr, "", "Verify all algorithms of all collectives."},
                      collective_row("all that have --algorithm"),
                      {"algorithm", kAlgorithm, "NAME", "all of --collective",
                       "Algorithm; the list below has those of each collective."},
                      {"ranks", kRanks, "LIST", "sums of --groups",
                       "Numbers of ranks, 1 to 1024, as a list of numbers and ranges: 1-64,100."},
                      groups_row("several layouts, for algorithms that work across hosts", "A list: 2x2,4x8,3+5.")},
          .examples = {"tutti verify --all --ranks 1-64", "tutti verify --algorithm hierarchical --groups 2x2,4x8,3+5"},
          .environment = "no variable has an effect.",
          .appendix = "Algorithms of each collective:" + all_algorithms() + "\n"};
}

}  // namespace tutti::tool
