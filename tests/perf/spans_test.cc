#include "perf/tool/spans.h"

#include <gtest/gtest.h>

namespace perf {
namespace {

Row row(std::uint64_t bytes, const char* algorithm, const char* protocol = "Simple") {
  Row made;
  made.bytes = bytes;
  made.out_of_place.algorithm = algorithm;
  made.out_of_place.protocol = protocol;
  return made;
}

TEST(SizeRanges, End_WhereAnotherAlgorithmRan) {
  const std::vector<Row> rows = {row(8, "one_shot", "LL"), row(32, "recursive_doubling", "LL"),
                                 row(128, "one_shot", "LL"), row(512, "one_shot", "LL"), row(2048, "ring")};
  EXPECT_EQ(spans_of(rows, &Row::out_of_place),
            "one_shot (LL) 8 and 128 to 512 B, recursive_doubling (LL) 32 B, ring (Simple) 2048 B");
}

TEST(SizeRanges, ListSizes_ThatRanWithSeveralAlgorithms) {
  const std::vector<Row> rows = {row(8, "ring"), row(16, "ring"), row(16, "direct"), row(32, "ring")};
  EXPECT_EQ(spans_of(rows, &Row::out_of_place), "ring (Simple) 8 to 32 B, direct (Simple) 16 B");
}

TEST(SizeRanges, OmitEmptyRuns) {
  const std::vector<Row> rows = {row(0, ""), row(8, "two_shot_mapped", ""), row(16, ""),
                                 row(32, "two_shot_mapped", "")};
  EXPECT_EQ(spans_of(rows, &Row::out_of_place), "two_shot_mapped 8 to 32 B");
  EXPECT_EQ(spans_of(rows, &Row::in_place), "");
}

}  // namespace
}  // namespace perf
