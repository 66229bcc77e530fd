// If a process cannot open as many files as its ranks need, an error or a warning reports it, and no thread spins.
#include "tests/bootstrap/descriptors.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/base/log.h"
#include "src/bootstrap/acceptor.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/launcher.h"
#include "tests/bootstrap/processes.h"
#include "tests/bootstrap/shared_unique_id.h"

namespace tutti::test {
namespace {

// UndefinedBehaviorSanitizer, combined with it, opens pipes to check whether memory is readable.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kNeedsFiles = true;
#else
constexpr bool kNeedsFiles = false;
#endif

// A listener, and a client that waits to be accepted.
TEST(DescriptorLimit, PausesAccepting_WhenExhausted) {
  if (kNeedsFiles) GTEST_SKIP() << "the sanitizer opens files itself";
  Socket listener = listen_at({loopback_address(), "", SOCK_STREAM}).value();
  const Address address = local_address(listener).value();
  Acceptor acceptor(0);
  acceptor.listen(std::move(listener), Role::tree, {});
  const Socket caller = connect_to({address, "", SOCK_STREAM}).value();
  std::vector<pollfd> polled;
  acceptor.watch(polled);
  ASSERT_EQ(::poll(polled.data(), polled.size(), 20'000), 1);
  {
    const FewDescriptors none(0);
    EXPECT_EQ(acceptor.serve(polled).code(), Code::system);
  }
  polled.clear();
  acceptor.watch(polled);
  EXPECT_EQ(polled[0].events, 0);
  EXPECT_EQ(::poll(polled.data(), polled.size(), static_cast<int>(acceptor.deadline().left_ms())), 0);
  EXPECT_EQ(acceptor.deadline().left_ms(), 0);  // The pause has ended, but the last poll excluded the listener.
  polled.clear();
  acceptor.watch(polled);
  ASSERT_EQ(::poll(polled.data(), polled.size(), 20'000), 1);
  EXPECT_TRUE(acceptor.serve(polled).ok());
  polled.clear();
  acceptor.watch(polled);
  EXPECT_EQ(polled.size(), 2U);
}

TEST(DescriptorLimit, LetsRanksJoin_WhenDescriptorsBecomeFree) {
  if (kNeedsFiles) GTEST_SKIP() << "the sanitizer opens files itself";
  static const Gate warned;
  const Shared<UniqueId> id;
  const Gate made;
  Processes processes;
  processes.start([&]() -> std::string {
    set_log_sink([](std::string_view line) {
      if (line.find("ranks cannot join: accept a connection: Too many open files") != std::string_view::npos)
        warned.open();
    });
    Result<UniqueId> own = make_unique_id(here());
    if (!own.ok()) return std::move(own).status().message();
    *id = own.value();
    {
      const FewDescriptors none(0);
      made.open();
      warned.wait();
    }
    for (;;) ::pause();
  });
  made.wait();
  JoinOptions options;
  options.timeout_ms = 20'000;
  EXPECT_EQ(Bootstrap::join(*id, 0, 1, options).status().message(), "");
}

TEST(DescriptorLimit, FailsAtOnce_WhenRankHasNone) {
  if (kNeedsFiles) GTEST_SKIP() << "the sanitizer opens files itself";
  const FewDescriptors none(0);
  RendezvousPoint point;
  point.job = "test." + std::to_string(::getpid());
  const Status status = share_unique_id({1, 2, "test", point}, {}, {Deadline::after_ms(100)}).status();
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_NE(status.message().find("Too many open files: the limit of this process is"), std::string::npos);
  EXPECT_EQ(status.message().find("has not started"), std::string::npos) << status.message();
}

// Rank 0's process also runs the rendezvous, and exits as soon as it has failed. With the smallest limit rank 0 itself
// runs out of descriptors. With the largest limit the rendezvous can serve all ranks.
TEST(DescriptorLimit, IsReportedToAllRanks_WhenRankZeroRunsOut) {
  if (kNeedsFiles) GTEST_SKIP() << "the sanitizer opens files itself";
  for (int spare = 10; spare <= 16; ++spare) {
    const Shared<UniqueId> id;
    const Gate made;
    Processes processes;
    processes.start([&]() -> std::string {
      const FewDescriptors few(spare);
      Result<UniqueId> own = make_unique_id(here());
      if (!own.ok()) return std::move(own).status().message();
      *id = own.value();
      made.open(4);
      return Bootstrap::join(*id, 0, 5, {}).status().message();
    });
    for (Rank rank = 1; rank < 5; ++rank) {
      processes.start([&, rank] {
        made.wait();
        return Bootstrap::join(*id, rank, 5, {}).status().message();
      });
    }
    for (const std::string& text : processes.reports()) {
      EXPECT_NE(text.find("Too many open files: the limit of this process is"), std::string::npos) << text;
      EXPECT_NE(text.find("while rank 0 was joining"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace tutti::test
