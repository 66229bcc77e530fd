// Which transport ranks of several hosts take where none was asked for.
#include "src/communicator/joining/between_hosts.h"

#include <gtest/gtest.h>

#include "src/communicator/carriers.h"

namespace tutti::test {
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

TEST(BetweenHosts, IsWhatWasAskedForWhereThatIsThere) {
  Config config;
  for (const char* transport : {"", "shm", "tcp"}) {
    config.transport = transport;
    EXPECT_TRUE(check_asked_transport(config).ok()) << transport;
  }
  config.encrypt = true;
  EXPECT_TRUE(check_asked_transport(config).ok());
  config.transport = "pigeons";
  EXPECT_FALSE(check_asked_transport(config).ok());
}

TEST(BetweenHosts, IsProtectedByTcpAlone) {
  Config config;
  config.transport = "ucx";
  if (!open_carriers(config.transport).ok()) GTEST_SKIP() << "no UCX";
  EXPECT_TRUE(check_asked_transport(config).ok());
  for (bool Config::*asked : {&Config::encrypt, &Config::check_tcp}) {
    Config protects = config;
    protects.*asked = true;
    EXPECT_EQ(
        check_asked_transport(protects).message().find("TUTTI_ENCRYPT and TUTTI_CHECK are for TCP: transport ucx"), 0U);
  }
}

}  // namespace
}  // namespace tutti::test
