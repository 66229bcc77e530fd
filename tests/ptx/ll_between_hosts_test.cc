// Small calls by LL between emulated hosts, over a carrier that copies from device to device while kernels run.
#include <gtest/gtest.h>

#include "tests/ptx/switch_calls.h"
#include "tests/transports/memory_carrier.h"

namespace tutti::test {
namespace {

// More calls than slots, whose lengths differ. Host 0 has consecutive ranks, or not.
TEST(LlBetweenHosts, RunsSmallCalls) {
  constexpr SwitchCall kCalls[] = {{DataType::float32, Reduction::sum, 1},
                                   {DataType::float32, Reduction::sum, 3001},
                                   {DataType::bfloat16, Reduction::avg, 1005},
                                   {DataType::int32, Reduction::sum, 7},
                                   {.count = 501, .collective = Collective::all_gather},
                                   {DataType::bfloat16, Reduction::avg, 1005, false, Collective::reduce_scatter},
                                   {DataType::float64, Reduction::sum, 507}};
  const auto work = [&](const Member& member) -> std::string {
    for (int turn = 0; turn < 4; ++turn) {
      for (const SwitchCall& call : kCalls) {
        const std::string result =
            run_switch_call(member, call, call.collective == Collective::all_reduce ? "host_one_shot" : "hierarchical");
        if (result != "right") return result;
        const std::string protocol = member.own[0].last_run().protocol;
        if (protocol != "LL") return "used " + protocol;
      }
    }
    return "right";
  };
  for (const std::vector<Rank>& host_of : {std::vector<Rank>{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 1, 1, 2, 2}}) {
    MemorySource carriers;
    EXPECT_EQ(run_ranks_on_hosts(host_of, "none", work, "", &carriers), "right") << testing::PrintToString(host_of);
  }
}

}  // namespace
}  // namespace tutti::test
