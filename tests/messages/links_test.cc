// Opening of links, and what delays it.
#include "src/messages/links.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "src/base/log.h"
#include "tests/messages/message_endpoints.h"

namespace tutti::test {
namespace {

// Counts the log lines that contain a text.
class LogLines {
 public:
  explicit LogLines(std::string_view text) {
    wanted_ = text;
    count_ = 0;
    set_log_sink([](std::string_view line) { count_ += line.find(wanted_) == std::string_view::npos ? 0 : 1; });
  }
  ~LogLines() { set_log_sink(nullptr); }
  LogLines(const LogLines&) = delete;

  int count() const { return count_; }

 private:
  static inline std::string wanted_;
  static inline std::atomic<int> count_ = 0;
};

// This process can open no descriptor while the object exists.
class NoDescriptors {
 public:
  NoDescriptors() {
    TUTTI_ASSERT(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(free);
    const rlimit none = {static_cast<rlim_t>(free), before_.rlim_max};
    TUTTI_ASSERT(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

template <typename Condition>
void await(const Condition& condition) {
  const Deadline hang = Deadline::after_ms(kHangMs);
  while (!condition() && !hang.passed()) std::this_thread::yield();
  EXPECT_TRUE(condition());
}

class Links : public ::testing::TestWithParam<PartyOptions> {};
INSTANTIATE_TEST_SUITE_P(Transports, Links,
                         ::testing::Values(PartyOptions{}, PartyOptions{true, Protection::none},
                                           PartyOptions{true, Protection::encrypted}));

TEST_P(Links, AreOpenedAgain_WhenReceiverHangsUpDuringHandshake) {
  Party party(2, GetParam());
  party.close(0);
  std::unique_ptr<Transfer> sent;
  {
    const Socket listener = party.listen(0);
    sent = send(party[1], 0, 1, numbers(5));
    Party::await(listener.get(), POLLIN);
    ASSERT_TRUE(accept_socket(listener).value());  // Closes the connection.
  }
  party.start(0);
  EXPECT_EQ(receive(party[0], 1, 1, 5)->outcome(), "ok");
  EXPECT_EQ(sent->outcome(), "ok");
  EXPECT_TRUE(party.failure().ok());
}

TEST_P(Links, AreNotOpened_WhenAllMessagesAreCancelled) {
  Party party(2, GetParam());
  party.close(0);  // Attempts to open the link fail.
  for (const std::size_t count : {std::size_t{5}, kLargestEager + 1}) {
    const int earlier = party.address_calls;
    const auto cancelled = send(party[1], 0, 1, numbers(count));
    await([&] { return party.address_calls >= earlier + 2; });
    EXPECT_TRUE(party[1].cancel(*cancelled->request));
    await([&] { return party[1].deadline().at_ns == Deadline{}.at_ns; });
  }
  party.start(0);
  EXPECT_EQ(send(party[1], 0, 1, numbers(5))->outcome(), "ok");
  EXPECT_EQ(receive(party[0], 1, 1, 5)->outcome(), "ok");
  EXPECT_TRUE(party.failure().ok());
}

// As after a handshake that took the sender too long: it cannot know that the receiver has given up.
TEST_P(Links, AreOpenedAgain_WhenReceiverHangsUpAfterHandshake) {
  Party party(2, GetParam());
  party.close(0);
  std::unique_ptr<Transfer> sent;
  {
    const Socket listener = party.listen(0);
    sent = send(party[1], 0, 1, numbers(5));
    party.accept(listener, 0);  // Closes the connection.
    Party::await(listener.get(), POLLIN);
    EXPECT_FALSE(sent->request->complete());
  }
  party.start(0);
  EXPECT_EQ(receive(party[0], 1, 1, 5)->outcome(), "ok");
  EXPECT_EQ(sent->outcome(), "ok");
  EXPECT_TRUE(party.failure().ok());
}

TEST(Link, IsOpenedByServiceThread_WhenAddressIsDelayed) {
  Party party(2);
  party.addresses.acquire();
  const auto sent = send(party[0], 1, 1, numbers(5));
  EXPECT_FALSE(sent->request->complete());
  party.addresses.release();
  EXPECT_EQ(sent->outcome(), "ok");
}

TEST(Link, ReportsItsAddress_UntilReportIsSent) {
  const Party party(1);
  await([&] { return party.reports >= Party::kReports; });
  EXPECT_EQ(send(party[0], 0, 1, numbers(5))->outcome(), "ok");
  EXPECT_EQ(party.reports, Party::kReports);
}

TEST(Link, WaitsForDescriptors_OfSender) {
  Party party(2);
  const LogLines lines("wait for connections, which are retried: open a socket: Too many open files");
  std::unique_ptr<Transfer> sent;
  {
    const NoDescriptors none;
    sent = send(party[0], 1, 1, numbers(5));
    await([&] { return party.address_calls >= 3; });
  }
  EXPECT_EQ(sent->outcome(), "ok");
  EXPECT_EQ(lines.count(), 1);
  EXPECT_TRUE(party.failure().ok());
}

TEST(Link, WaitsForDescriptors_OfReceiver) {
  Party party(2);
  const LogLines lines("wait for connections, which are retried: accept a connection: Too many open files");
  const SocketAddress endpoint = party.endpoint_of(1);
  Socket socket = open_socket_for(endpoint).value();
  {
    const NoDescriptors none;
    ASSERT_TRUE(connect(socket, endpoint).ok());
    await([&] { return lines.count() > 0; });
  }
  const AcceptedPeer sender = party.complete_handshake(std::move(socket), 0, 1);
  EXPECT_EQ(read_frame(sender.socket).kind, MessageFrameKind::welcome);
  EXPECT_EQ(lines.count(), 1);
  EXPECT_TRUE(party.failure().ok());
}

}  // namespace
}  // namespace tutti::test
