// Selection of ports and addresses on a guest's devices: rxe0 and rxe1, each with one active port with a MAC and an
// IPv4 address.
#include <gtest/gtest.h>

#include <string>

#include "transports/verbs/device.h"

namespace tutti::test {
namespace {

std::vector<std::string> names(const VerbsOptions& options) {
  auto found = find_verbs_ports(options);
  std::vector<std::string> described;
  if (!found.ok()) return {std::move(found).status().message()};
  for (const VerbsPort& port : found.value()) described.push_back(port.describe());
  return described;
}

TEST(VerbsPorts, IncludeAllActivePorts) {
  EXPECT_EQ(names({}), (std::vector<std::string>{"rxe0 port 1, gid 1 (::ffff:10.77.0.1)",
                                                 "rxe1 port 1, gid 1 (::ffff:10.77.0.2)"}));
}

TEST(VerbsPorts, FollowFilter) {
  EXPECT_EQ(names({.hca = "rxe1:1"}), (std::vector<std::string>{"rxe1 port 1, gid 1 (::ffff:10.77.0.2)"}));
  EXPECT_EQ(names({.hca = "^rxe1"}), (std::vector<std::string>{"rxe0 port 1, gid 1 (::ffff:10.77.0.1)"}));
}

TEST(VerbsPorts, UseConfiguredGid) {
  const auto linked = names({.hca = "rxe0", .gid_index = 0});
  ASSERT_EQ(linked.size(), 1U);
  EXPECT_EQ(linked[0].rfind("rxe0 port 1, gid 0 (fe80::", 0), 0U) << linked[0];
}

TEST(VerbsPorts, ReportReasons_WhenNoneIsUsable) {
  const auto no_gid = names({.hca = "rxe0", .gid_index = 200});
  ASSERT_EQ(no_gid.size(), 1U);
  EXPECT_NE(no_gid[0].find("rxe0 port 1 has no GID 200, which TUTTI_IB_GID_INDEX"), std::string::npos) << no_gid[0];
  EXPECT_NE(no_gid[0].find("rxe1 port 1 is left out by TUTTI_IB_HCA"), std::string::npos) << no_gid[0];
}

TEST(VerbsPorts, OfSoftwareAreUsed_OnlyWhenRequested) {
  const auto automatic = names({.hca = "^rxe1", .use = VerbsUse::automatic});
  ASSERT_EQ(automatic.size(), 1U);
  EXPECT_NE(automatic[0].find("rxe0 port 1 is a software device"), std::string::npos) << automatic[0];
  EXPECT_NE(automatic[0].find("TUTTI_IB_HCA names it"), std::string::npos) << automatic[0];
  EXPECT_EQ(names({.hca = "rxe1", .use = VerbsUse::automatic}),
            (std::vector<std::string>{"rxe1 port 1, gid 1 (::ffff:10.77.0.2)"}));
}

TEST(VerbsPorts, ExcludeInactivePorts) {
  ASSERT_EQ(std::system("ip link set dev r0 down"), 0);
  const auto up = names({});
  const auto down = names({.hca = "=rxe0"});
  ASSERT_EQ(std::system("ip link set dev r0 up"), 0);
  EXPECT_EQ(up, (std::vector<std::string>{"rxe1 port 1, gid 1 (::ffff:10.77.0.2)"}));
  ASSERT_EQ(down.size(), 1U);
  EXPECT_NE(down[0].find("rxe0 port 1 is"), std::string::npos) << down[0];
  EXPECT_NE(down[0].find("not active"), std::string::npos) << down[0];
}

// Must be the last of these tests, because it changes the addresses of rxe1.
TEST(VerbsPorts, PreferIpv4_OverEarlierIpv6Address) {
  ASSERT_EQ(std::system("ip address del 10.77.0.2/24 dev r1 && ip address add fd77::2/64 dev r1 nodad"), 0);
  EXPECT_EQ(names({.hca = "rxe1"}), (std::vector<std::string>{"rxe1 port 1, gid 1 (fd77::2)"}));
  ASSERT_EQ(std::system("ip address add 10.77.0.3/24 dev r1"), 0);
  EXPECT_EQ(names({.hca = "rxe1"}), (std::vector<std::string>{"rxe1 port 1, gid 2 (::ffff:10.77.0.3)"}));
}

}  // namespace
}  // namespace tutti::test
