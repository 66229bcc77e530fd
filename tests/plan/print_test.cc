#include "src/plan/print.h"

#include <gtest/gtest.h>

#include "tests/plan/samples.h"

namespace tutti::test {
namespace {

using namespace samples;

TEST(Print, NamesRanges) {
  Steps steps(2);
  steps.fold({lane(0, 6, 4), strided(input(1, 6), 2, 4), strided(scratch(0, 6), 3, 3)}, {at(5, output(3, 6)), flag(7)},
             Fold::complete);
  EXPECT_EQ(describe(steps[0], 2),
            "lane 0 tag 4 + input[1..2, +4..] (6) + scratch[0..5] -> output[3..8] of rank 5, flag 7 (complete)");
}

TEST(Print, ShowsStagesAndRounds) {
  const DirectReduceScatter algorithm;
  const Plan plan = emit_plan(algorithm, problem(Collective::reduce_scatter, 2), 1);
  EXPECT_EQ(print(plan),
            "rank 1: reduce_scatter of 2 ranks; 1 units per block, 0 of scratch\n"
            "  stage 0\n"
            "    round 0\n"
            "      input[0] -> lane 0\n"
            "  stage 1\n"
            "    round 1\n"
            "      lane 0 + input[1] -> output[0] (complete)\n");
}

TEST(Print, DrawsEdgeForEachMessage) {
  const std::string dot = graphviz(emit_plans(TreeBroadcast(), problem(Collective::broadcast, 3, true)));
  EXPECT_NE(dot.find("  r0s0 -> r1s0;\n"), std::string::npos) << dot;
  EXPECT_NE(dot.find("  r0s1 -> r2s0;\n"), std::string::npos) << dot;
  EXPECT_NE(dot.find("  { rank=same; r0s0; r1s0; r2s0; }"), std::string::npos) << dot;
  EXPECT_EQ(dot.find("dashed"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
