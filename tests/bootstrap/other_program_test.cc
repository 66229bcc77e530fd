// Rendezvous at an address where another program listens.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <climits>
#include <functional>
#include <thread>
#include <vector>

#include "src/bootstrap/address.h"
#include "src/bootstrap/launcher.h"

namespace tutti::test {
namespace {

// Returns why rank 1 fails to ask a program that listens at the rendezvous address. `accepted`: the next connection.
// `connections`: number after which the program ends.
std::string failure_beside(std::int64_t timeout_ms, const std::function<void(Socket accepted)>& program,
                           int connections = INT_MAX) {
  Socket listener = listen_at({loopback_address(), "", SOCK_STREAM}).value();
  RendezvousPoint point;
  point.host = "127.0.0.1";
  point.port = static_cast<std::uint16_t>(local_address(listener).value().port);
  point.variable = "TUTTI_ROOT";
  std::atomic<bool> over = false;
  std::thread serving([&] {
    while (!over) {
      Result<std::optional<Socket>> accepted = accept_socket(listener);
      if (accepted.ok() && accepted.value()) {
        program(std::move(*accepted.value()));
        if (--connections == 0) break;
      }
      std::this_thread::yield();
    }
    listener = {};
  });
  const Watch watch = {Deadline::after_ms(timeout_ms)};
  std::string text = share_unique_id({1, 2, "test", point}, RendezvousOptions{}, watch).status().message();
  over = true;
  serving.join();
  return text;
}

TEST(Rendezvous, SaysThatOtherProgramIsNotTutti) {
  std::vector<Socket> open;
  const std::string talks = failure_beside(20'000, [&](Socket accepted) {
    EXPECT_EQ(::send(accepted.get(), "SSH-2.0-OpenSSH", 15, MSG_NOSIGNAL), 15);
    open.push_back(std::move(accepted));
  });
  EXPECT_EQ(talks.find("the program at the other end is not Tutti"), 0U) << talks;
  const std::string closes = failure_beside(300, [](Socket) {});
  EXPECT_NE(closes.find(" accepted the connection"), std::string::npos) << closes;
  const std::string is_silent = failure_beside(300, [&](Socket accepted) { open.push_back(std::move(accepted)); });
  EXPECT_NE(is_silent.find(" accepted the connection, but does not answer: rank 0 is stopped, or another program"),
            std::string::npos)
      << is_silent;
  for (const std::string& text : {talks, closes, is_silent})
    EXPECT_EQ(text.find("works on one host"), std::string::npos);
}

TEST(Rendezvous, ReportsAbsentRank0_WhenOtherProgramHasEnded) {
  const std::string text = failure_beside(
      3000, [](Socket) {}, 1);
  EXPECT_NE(text.find(": rank 0 has not started, failed to join (see its log), or all ranks have joined already"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("a program accepted the connection"), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti::test
