// Messages to other hosts, which a proxy of each rank posts.
#include <gtest/gtest.h>

#include "tests/simulator/machines.h"
#include "tools/simulator/simulate.h"

namespace tutti::simulator::test {
namespace {

using namespace test;

// 1e6 bytes between two hosts, over a port of 10 GB/s, in 1000 messages.
TEST(Simulation, LimitsMessagesOfPort) {
  Cluster cluster = cluster_of(2, 1);
  const Network network = network_of(cluster), local = network_of(cluster_of(1, 2));
  Costs costs = plain_costs();
  Call call = whole(1e6);
  call.chunk_bytes = 1e3;
  call.channels = 4;
  call.loop.skew = 1;
  call.loop.slots = 250;
  const Wanted wanted = {Collective::broadcast, "direct"};
  const double inside_us = simulated(local, costs, wanted, call).time_us;
  costs.proxy_us = 0.05;
  EXPECT_NEAR(simulated(network, costs, wanted, call).time_us, 100, 20);
  costs.proxy_us = 0.5;
  EXPECT_NEAR(simulated(network, costs, wanted, call).time_us, 500, 20);
  EXPECT_DOUBLE_EQ(simulated(local, costs, wanted, call).time_us, inside_us);
}

// Messages of LL to other hosts are posted, those within a host are not, and neither are those of Simple.
TEST(Simulation, PostsMessagesOfLlToOtherHosts) {
  const auto us = [](Rank hosts, Protocol protocol, double post_us) {
    Costs costs = plain_costs();
    costs.post_us = post_us;
    Call call = whole(1e3);
    call.protocol = protocol;
    const Network network = network_of(hosts == 1 ? cluster_of(1, 2) : cluster_of(hosts, 1));
    return simulated(network, costs, {Collective::broadcast, "direct"}, call).time_us;
  };
  EXPECT_NEAR(us(2, Protocol::ll, 7) - us(2, Protocol::ll, 0), 7, 1e-3);
  EXPECT_DOUBLE_EQ(us(2, Protocol::simple, 7), us(2, Protocol::simple, 0));
  EXPECT_DOUBLE_EQ(us(1, Protocol::ll, 7), us(1, Protocol::ll, 0));
}

// A port of two ranks has two proxies. Links of switches have none, although several hosts share them.
TEST(Simulation, LimitsMessagesOfEachRank) {
  Costs costs = plain_costs();
  costs.proxy_us = 100;  // Much longer than the transfers.
  Call call = whole(1e6);
  call.chunk_bytes = 1e3;
  call.loop.skew = 1;
  call.loop.slots = 500;
  const auto us = [&](const Cluster& cluster, std::string_view algorithm) {
    return simulated(network_of(cluster), costs, {Collective::all_reduce, algorithm}, call).time_us;
  };
  Cluster cluster = cluster_of(2, 2);
  const double own_us = us(cluster, "hierarchical");
  EXPECT_GT(own_us, 20'000);
  cluster.rails = 1;
  EXPECT_NEAR(us(cluster, "hierarchical"), own_us, 0.05 * own_us);
  cluster = cluster_of(4, 1);
  const double near_us = us(cluster, "two_shot");
  cluster.hosts_per_leaf = 2;
  cluster.oversubscription = 2;
  EXPECT_NEAR(us(cluster, "two_shot"), near_us, 0.05 * near_us);
}

}  // namespace
}  // namespace tutti::simulator::test
