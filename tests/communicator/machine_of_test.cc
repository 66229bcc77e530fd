// Cost model of the machines on which the ranks of a communicator run.
#include <gtest/gtest.h>

#include <vector>

#include "src/communicator/planning/planning.h"

namespace tutti::test {
namespace {

// CPUs of the ranks have different instructions. Each call waits for its slowest rank, and all ranks must make the same
// choice, so the cost model must use the slowest CPU.
TEST(CostModel, EncodesAtSpeedOfSlowestCpu) {
  Hosts hosts = Hosts::one_rank_per_host(4);
  std::vector<Location> locations(4);
  const auto int8_of = [](const Hosts& of) {
    return machine_of(of).costs.encode_gbytes_per_s[static_cast<std::size_t>(CompressionFormat::int8)];
  };
  const double usual = int8_of(hosts);
  const Instructions instructions[] = {Instructions::avx512, Instructions::avx2, Instructions::avx512,
                                       Instructions::baseline};
  for (std::size_t rank = 0; rank < 4; ++rank) locations[rank].instructions = number_of(instructions[rank]);
  hosts.place(locations);
  const double all = int8_of(hosts), wider = int8_of(hosts.of({0, 1})), widest = int8_of(hosts.of({2, 0}));
  EXPECT_LT(all, wider);
  EXPECT_LT(wider, widest);
  EXPECT_EQ(widest, usual);
  EXPECT_EQ(int8_of(hosts.of({3})), all);
}

}  // namespace
}  // namespace tutti::test
