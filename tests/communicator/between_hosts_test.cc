// Which transport ranks of several hosts take where none was asked for.
#include "src/communicator/joining/between_hosts.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

std::string named(Rank rank) { return "rank " + std::to_string(rank) + " (its host)"; }

TEST(BetweenHosts, IsRdmaOnlyWhereAllRanksHaveIt) {
  EXPECT_EQ(why_tcp({{"verbs", ""}, {"verbs", ""}, {"verbs", ""}}, named), "");
  EXPECT_EQ(why_tcp({{"verbs", ""}, {"verbs", ""}, {"", "no library"}}, named),
            "rank 2 (its host) has no verbs: no library");
  EXPECT_EQ(why_tcp({{"", "no device"}, {"verbs", ""}, {"", "no library"}}, named),
            "rank 0 (its host) has no verbs: no device");
}

TEST(BetweenHosts, IsTcpWhereRanksHaveDifferentTransports) {
  EXPECT_EQ(why_tcp({{"verbs", ""}, {"pigeons", ""}}, named),
            "rank 0 (its host) has verbs, and rank 1 (its host) pigeons");
}

}  // namespace
}  // namespace tutti
