#include "src/plan/verify.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/plan/samples.h"

namespace tutti {
namespace {

using namespace samples;

const RingReduceScatter kRingReduceScatter;
const RingAllGather kRingAllGather;
const DirectReduceScatter kDirectReduceScatter;
const DirectAllGather kDirectAllGather;
const AllReduce kRing(kRingReduceScatter, kRingAllGather);
const AllReduce kTwoShot(kDirectReduceScatter, kDirectAllGather);
const TreeBroadcast kTree;
const MappedAllReduce kMapped;

std::string failure(std::span<const Plan> plans, const Loop& loop = {}) {
  return verify(plans, loop).status().message();
}

TEST(Verify, AcceptsTheSamples) {
  for (Rank ranks = 1; ranks <= 20; ++ranks) {
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(describe(problem(Collective::all_reduce, ranks, in_place)));
      EXPECT_EQ(failure(emit_plans(kRingReduceScatter, problem(Collective::reduce_scatter, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kRingAllGather, problem(Collective::all_gather, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kRing, problem(Collective::all_reduce, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kTwoShot, problem(Collective::all_reduce, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kTree, problem(Collective::broadcast, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kMapped, problem(Collective::all_reduce, ranks, in_place))), "");
    }
  }
}

TEST(Verify, ProvesARingOf64WithinMilliseconds) {
  const std::vector<Plan> plans = emit_plans(kRing, problem(Collective::all_reduce, 64));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(failure(plans), "");
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds", std::to_string(time.count()));
  std::printf("%.2f ms\n", time.count());
}

}  // namespace
}  // namespace tutti
