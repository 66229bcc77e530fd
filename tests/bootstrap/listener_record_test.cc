#include "src/bootstrap/listener_record.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tutti::test {
namespace {

ListenerRecord at(std::uint16_t family, std::uint16_t port, std::uint8_t first_byte) {
  ListenerRecord record;
  record.address.family = family;
  record.address.port = port;
  record.address.bytes[0] = first_byte;
  return record;
}

TEST(ListenerRecord, RequiresAddressWithPort) {
  EXPECT_TRUE(check(at(4, 4711, 192), LoopbackPolicy::reject).ok());
  EXPECT_TRUE(check(at(6, 4711, 0xfd), LoopbackPolicy::reject).ok());
  for (const std::uint16_t family : {0, 1, 5, 0xffff}) {
    EXPECT_EQ(check(at(family, 4711, 192), LoopbackPolicy::reject).message(),
              "it reported no address at which it listens");
  }
  EXPECT_FALSE(check(at(4, 0, 192), LoopbackPolicy::allow).ok());
}

// A loopback address from another host would lead back to the caller's own host.
TEST(ListenerRecord, RejectsLoopback_OfAnotherHost) {
  const Status status = check(at(4, 4711, 127), LoopbackPolicy::reject);
  EXPECT_NE(status.message().find("name another interface by TUTTI_SOCKET_IFNAME there"), std::string::npos);
  EXPECT_TRUE(check(at(4, 4711, 127), LoopbackPolicy::allow).ok());
}

TEST(ListenerRecord, TerminatesInterfaceName) {
  ListenerRecord record;
  std::fill(std::begin(record.interface_name), std::end(record.interface_name), 'e');
  EXPECT_EQ(interface_of(record), "eeeeeeeeeeeeeeee");
  EXPECT_EQ(interface_of(ListenerRecord{}), "unknown interface");
}

}  // namespace
}  // namespace tutti::test
