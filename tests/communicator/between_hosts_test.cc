// Choice of the transport between hosts.
#include "src/communicator/joining/network_choice.h"

#include <gtest/gtest.h>

#include "src/communicator/call/carriers.h"
#include "src/communicator/communicator.h"

namespace tutti::test {
namespace {

std::string named(Rank rank) { return "rank " + std::to_string(rank) + " (its host)"; }

TEST(TransportBetweenHosts, IsRdma_OnlyWhenAllRanksHaveIt) {
  EXPECT_EQ(why_tcp({{"verbs", ""}, {"verbs", ""}, {"verbs", ""}}, named), "");
  EXPECT_EQ(why_tcp({{"verbs", ""}, {"verbs", ""}, {"", "no library"}}, named),
            "rank 2 (its host) has no verbs: no library");
  EXPECT_EQ(why_tcp({{"", "no device"}, {"verbs", ""}, {"", "no library"}}, named),
            "rank 0 (its host) has no verbs: no device");
}

TEST(TransportBetweenHosts, IsTcp_WhenRanksHaveDifferentTransports) {
  EXPECT_EQ(why_tcp({{"verbs", ""}, {"pigeons", ""}}, named),
            "rank 0 (its host) has verbs, and rank 1 (its host) pigeons");
}

TEST(TransportBetweenHosts, IsRequestedOne_WhenAvailable) {
  Config config;
  for (const char* transport : {"", "shm", "tcp", "shm+tcp"}) {
    config.transport = transport;
    EXPECT_TRUE(check_requested_transport(config).ok()) << transport;
  }
  config.encrypt = true;
  EXPECT_TRUE(check_requested_transport(config).ok());
  for (const char* transport : {"pigeons", "shm+shm", "shm+pigeons", "shm+"}) {
    config.transport = transport;
    EXPECT_FALSE(check_requested_transport(config).ok()) << transport;
  }
}

TEST(TransportBetweenHosts, LeavesRanksOfHostTogether_IfRequestedWithSharedMemory) {
  EXPECT_EQ(network_of("shm+verbs"), "verbs");
  EXPECT_EQ(network_of("tcp"), "tcp");
  CommunicatorOptions options;
  for (const bool together : {true, false}) {
    options.transport = together ? "shm+tcp" : "tcp";
    auto ranks = Communicator::create_all(2, options);
    ASSERT_TRUE(ranks.ok()) << std::move(ranks).status().message();
    EXPECT_EQ(ranks.value().front()->on_one_host(), together);
  }
}

TEST(TransportBetweenHosts, SupportsEncryptionAndChecks_OnlyWithTcp) {
  Config config;
  config.transport = "ucx";
  if (!open_carriers(config.transport).ok()) GTEST_SKIP() << "no UCX";
  EXPECT_TRUE(check_requested_transport(config).ok());
  for (bool Config::*requested : {&Config::encrypt, &Config::check_tcp}) {
    Config protects = config;
    protects.*requested = true;
    EXPECT_EQ(check_requested_transport(protects).message().find(
                  "transport ucx does not support TUTTI_ENCRYPT and TUTTI_CHECK"),
              0U);
  }
}

}  // namespace
}  // namespace tutti::test
