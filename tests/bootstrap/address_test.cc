#include "src/bootstrap/address.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>

#include "tests/bootstrap/processes.h"

namespace tutti::test {
namespace {

TEST(Address, ReportsThatLoopbackIsDown) {
  Processes processes;
  processes.start([]() -> std::string {  // All interfaces of a new network namespace are down.
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return "";
    Address unused = loopback_address();
    unused.port = 9;
    return connect_to({unused, "", SOCK_STREAM}).status().message();
  });
  const std::string text = processes.report(0);
  if (text.empty()) GTEST_SKIP() << "this user makes no network namespaces";
  EXPECT_NE(text.find("the loopback interface is down (ip link set lo up)"), std::string::npos) << text;
}

TEST(Address, TranslatesLinkLocalScope_ToLocalIndex) {
  Address address;
  address.family = 6;
  address.scope = 4321;
  address.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(seen_from("lo", address).scope, ::if_nametoindex("lo"));
  EXPECT_EQ(seen_from("none0", address).scope, 4321U);
  address.bytes[0] = 0xfd;
  EXPECT_EQ(seen_from("lo", address).scope, 4321U);
}

TEST(Address, FindsInterface_OfAddress) {
  Address address = loopback_address();
  address.port = 4711;
  EXPECT_EQ(interface_of(address), "lo");
  address.bytes = {192, 0, 2, 77};
  EXPECT_EQ(interface_of(address), "");
}

TEST(Address, MatchesInterfaceFilter) {
  EXPECT_TRUE(admits("", ""));
  EXPECT_TRUE(admits("eth,ib", "ib0"));
  EXPECT_FALSE(admits("^docker", "docker0"));
  EXPECT_FALSE(admits("^docker", ""));  // An unknown interface is not known to be excluded.
  EXPECT_TRUE(admits("=eth0,eth1", "eth1"));
  EXPECT_FALSE(admits("=eth0,eth1", "eth10"));
}

TEST(Address, ReturnsInterfaceAddresses_OnlyForInterfaceList) {
  EXPECT_TRUE(interface_addresses("", 4).empty());
  EXPECT_TRUE(interface_addresses("lo", 4).empty());
  EXPECT_TRUE(interface_addresses("^eth0,docker", 4).empty());
  EXPECT_TRUE(interface_addresses("=l,none0", 4).empty());
  for (const char* list : {"=none0,=lo", "lo,=none0", "=lo,lo"}) {
    const std::vector<Address> found = interface_addresses(list, 4);
    ASSERT_EQ(found.size(), 1U) << list;  // Once, for any number of addresses and entries.
    EXPECT_EQ(found[0], loopback_address()) << list;
  }
  for (const Address& address : interface_addresses("=lo,e,w,n,b,d,v,t", 4))
    EXPECT_FALSE(is_link_local(address)) << describe(address);
}

TEST(Address, ReportsUnmatchedListEntries) {
  const std::vector<std::string> idle = unmatched_entries("=none0,lo");
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_EQ(idle[0].find("none0, which does not exist: there are "), 0U) << idle[0];
  EXPECT_NE(idle[0].find("lo"), std::string::npos) << idle[0];
  EXPECT_EQ(unmatched_entries("none0,lo,none1").size(), 2U);
  EXPECT_TRUE(unmatched_entries("^none0,none1").empty());
  EXPECT_TRUE(unmatched_entries("lo,lo").empty());
  EXPECT_TRUE(unmatched_entries("").empty());
}

}  // namespace
}  // namespace tutti::test
