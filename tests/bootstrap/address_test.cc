#include "src/bootstrap/address.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>

#include "tests/bootstrap/processes.h"

namespace tutti {
namespace {

TEST(Address, SaysThatLoopbackIsDown) {
  Processes processes;
  processes.start([]() -> std::string {  // In a new network nothing is up.
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return "";
    Address nobody = loopback_address();
    nobody.port = 9;
    return connect_to({nobody, "", SOCK_STREAM}).status().message();
  });
  const std::string text = processes.report(0);
  if (text.empty()) GTEST_SKIP() << "this user makes no network namespaces";
  EXPECT_NE(text.find("the loopback interface is down (ip link set lo up)"), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti
