// Two ends of a connection, and messages of unauthenticated clients that both ends reject.
#include "src/bootstrap/handshake.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/channel.h"

namespace tutti::test {
namespace {

Credentials credentials(std::uint8_t key) {
  Credentials made{};
  made.key.fill(key);
  made.communicator.fill(7);
  return made;
}

struct Ends {
  Handshake caller, responder;
};

Ends connect(const Claim& claim, const Credentials& callers, const Credentials& answerers, Rank self = 3) {
  auto pair = open_socket_pair(SOCK_STREAM);
  EXPECT_TRUE(pair.ok());
  auto [ours, theirs] = std::move(pair).value();
  Result<Handshake> caller = Handshake::connect(std::move(ours), claim, callers, JoinRecord{});
  Result<Handshake> responder = Handshake::answer(std::move(theirs), Role::tree, self, answerers);
  return {std::move(caller).value(), std::move(responder).value()};
}

constexpr Claim kClaim = {Role::tree, 5, 8, 3};

Result<bool> exchange(Ends& ends) {
  for (;;) {
    const bool called = TUTTI_TRY(ends.caller.advance());
    const bool answered = TUTTI_TRY(ends.responder.advance());
    if (called && answered) return true;
  }
}

TEST(Handshake, GivesBothEndsTheSameSession) {
  Ends ends = connect(kClaim, credentials(1), credentials(1));
  ASSERT_TRUE(exchange(ends).ok());
  const AcceptedPeer caller = std::move(ends.caller).finish();
  const AcceptedPeer responder = std::move(ends.responder).finish();
  EXPECT_EQ(caller.session, responder.session);
  EXPECT_EQ(responder.claim.rank, 5U);
  EXPECT_EQ(responder.claim.ranks, 8U);
}

TEST(Handshake, NeverReusesSession) {
  Ends first = connect(kClaim, credentials(1), credentials(1));
  Ends second = connect(kClaim, credentials(1), credentials(1));
  ASSERT_TRUE(exchange(first).ok() && exchange(second).ok());
  EXPECT_NE(std::move(first.caller).finish().session, std::move(second.caller).finish().session);
}

TEST(Handshake, FailsForCaller_WhenServerHasAnotherSecret) {
  Ends ends = connect(kClaim, credentials(1), credentials(2));
  Status status = exchange(ends).status();
  EXPECT_EQ(status.message().find("the other end does not hold the same secret"), 0U) << status.message();
}

TEST(Handshake, FailsForServer_WhenCallerMeansAnother) {
  Ends other_rank = connect(kClaim, credentials(1), credentials(1), 4);
  EXPECT_EQ(exchange(other_rank).status().message(), "the caller addressed another rank");
  Ends other_role = connect({Role::mesh, 5, 8, 3}, credentials(1), credentials(1));
  EXPECT_EQ(exchange(other_role).status().message(), "the caller addressed another rank");
  Credentials other = credentials(1);
  other.communicator.fill(8);
  Ends other_communicator = connect(kClaim, credentials(1), other);
  EXPECT_EQ(exchange(other_communicator).status().message(), "the caller addressed another communicator");
}

// A man in the middle: forwards the bytes of each end, and changes one byte.
struct Relay {
  Handshake caller, responder;
  Socket to_caller, to_answerer;
};

Relay relay() {
  auto [caller, near_caller] = open_socket_pair(SOCK_STREAM).value();
  auto [responder, near_answerer] = open_socket_pair(SOCK_STREAM).value();
  return {Handshake::connect(std::move(caller), kClaim, credentials(1), JoinRecord{}).value(),
          Handshake::answer(std::move(responder), Role::tree, 3, credentials(1)).value(), std::move(near_caller),
          std::move(near_answerer)};
}

std::size_t pass(const Socket& from, const Socket& to, std::size_t offset, std::ptrdiff_t altered) {
  std::uint8_t bytes[512];
  const ssize_t count = ::recv(from.get(), bytes, sizeof bytes, 0);
  if (count <= 0) return 0;
  const std::ptrdiff_t index = altered - static_cast<std::ptrdiff_t>(offset);
  if (index >= 0 && index < count) bytes[index] ^= 1;
  EXPECT_EQ(::send(to.get(), bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL), count);
  return static_cast<std::size_t>(count);
}

// Changes byte `altered` of the conversation; -1 changes none. Returns whether both ends complete.
bool completes(std::ptrdiff_t altered) {
  Relay between = relay();
  std::size_t said = 0;
  bool called = false, answered = false;
  for (int iteration = 0; iteration < 4; ++iteration) {
    Result<bool> caller = called ? Result<bool>(true) : between.caller.advance();
    Result<bool> responder = answered ? Result<bool>(true) : between.responder.advance();
    if (!caller.ok() || !responder.ok()) return false;
    called = caller.value();
    answered = responder.value();
    said += pass(between.to_caller, between.to_answerer, said, altered);
    said += pass(between.to_answerer, between.to_caller, said, altered);
  }
  return called && answered;
}

TEST(Handshake, Fails_WhenAnyByteIsAltered) {
  ASSERT_TRUE(completes(-1));
  for (std::ptrdiff_t byte = 0; byte < 80 + 72 + 240; ++byte) EXPECT_FALSE(completes(byte)) << "byte " << byte;
}

TEST(Handshake, RejectsGarbageOfAnyLength) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    auto [ours, theirs] = open_socket_pair(SOCK_STREAM).value();
    Handshake responder = Handshake::answer(std::move(theirs), Role::tree, 3, credentials(1)).value();
    std::vector<std::uint8_t> bytes(random() % 400);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    (void)!::send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    const Result<bool> result = responder.advance();
    EXPECT_FALSE(result.ok() && result.value());
    EXPECT_TRUE(!result.ok() || bytes.size() < 8);  // The first eight bytes suffice to reject.
  }
}

struct Channels {
  ControlChannel a, b;
  int socket_a, socket_b;
};

Channels channels() {
  Ends ends = connect(kClaim, credentials(1), credentials(1));
  EXPECT_TRUE(exchange(ends).ok());
  const int socket_a = ends.caller.descriptor(), socket_b = ends.responder.descriptor();
  return {ControlChannel(std::move(ends.caller).finish()), ControlChannel(std::move(ends.responder).finish()), socket_a,
          socket_b};
}

TEST(ControlChannel, CarriesMessagesBothWays) {
  Channels ends = channels();
  const std::uint32_t number = 42;
  ASSERT_TRUE(ends.a.send(Message::data, bytes_of(number)).ok());
  ASSERT_TRUE(ends.b.send_failure(timeout_error("rank 3 is late")).ok());
  const auto at_b = ends.b.receive(64);
  ASSERT_TRUE(at_b.ok() && at_b.value());
  EXPECT_EQ(at_b.value()->payload.size(), sizeof number);
  const auto at_a = ends.a.receive(kFailureBytes);
  ASSERT_TRUE(at_a.ok() && at_a.value());
  EXPECT_EQ(failure_in(*at_a.value()).code(), Code::timeout);
  EXPECT_EQ(failure_in(*at_a.value()).message(), "rank 3 is late");
}

TEST(ControlChannel, RejectsReplayedMessage) {
  Channels ends = channels();
  ASSERT_TRUE(ends.a.send(Message::data).ok());
  char message[256];
  const ssize_t bytes = ::recv(ends.socket_b, message, sizeof message, MSG_PEEK);
  ASSERT_GT(bytes, 0);
  ASSERT_TRUE(ends.b.receive(64).ok());
  ASSERT_EQ(::send(ends.socket_a, message, static_cast<std::size_t>(bytes), 0), bytes);
  EXPECT_EQ(ends.b.receive(64).status().message(), "a message was altered on its way");
}

TEST(ControlChannel, RejectsReflectedMessage) {
  Channels ends = channels();
  ASSERT_TRUE(ends.a.send(Message::data).ok());
  char message[256];
  const ssize_t bytes = ::recv(ends.socket_b, message, sizeof message, 0);
  ASSERT_EQ(::send(ends.socket_b, message, static_cast<std::size_t>(bytes), 0), bytes);
  EXPECT_EQ(ends.a.receive(64).status().message(), "a message was altered on its way");
}

TEST(ControlChannel, RejectsExcessiveLength_BeforeAllocating) {
  Channels ends = channels();
  const std::uint32_t header[2] = {0xffffffff, 5 | 1 << 16};
  ASSERT_EQ(::send(ends.socket_a, header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  EXPECT_EQ(ends.b.receive(64).status().message(), "a peer sent 4294967295 bytes where at most 64 were awaited");
}

class SecretFile {
 public:
  explicit SecretFile(std::string_view text, mode_t mode = 0600) {
    const int file = ::mkstemp(path_);
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::fchmod(file, mode);
    ::close(file);
  }
  ~SecretFile() { ::unlink(path_); }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/tutti-secret-XXXXXX";
};

Status join_alone(const std::string& rendezvous_file, const std::string& rank_file) {
  RendezvousOptions here;
  here.scope = ListenScope::host;
  here.secret_file = rendezvous_file;
  const UniqueId id = TUTTI_TRY(make_unique_id(here));
  JoinOptions options;
  options.timeout_ms = 5000;
  options.secret_file = rank_file;
  return Bootstrap::join(id, 0, 1, options).status();
}

TEST(SecretFile, AdmitsOnlyRanksWithSameSecret) {
  const SecretFile first("0123456789abcdef one"), second("0123456789abcdef two");
  EXPECT_TRUE(join_alone(first.path(), first.path()).ok());
  for (const std::string& wrong : {std::string(second.path()), std::string()}) {
    const Status status = join_alone(first.path(), wrong);
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_EQ(status.message().find("the other end does not hold the same secret"), 0U) << status.message();
  }
}

// The pipe has no writer: opening it would block for ever.
TEST(SecretFile, RejectsPipe) {
  const std::string path = "/tmp/tutti-secret-pipe-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Status status = communicator_key(UniqueId{}, path).status();
  ::unlink(path.c_str());
  EXPECT_EQ(status.code(), Code::invalid_usage);
  EXPECT_NE(status.message().find(path + " is not a regular file"), std::string::npos) << status.message();
}

TEST(SecretFile, RejectsPublicOrShortFile) {
  const SecretFile open("0123456789abcdef", 0644), brief("0123456789");
  EXPECT_NE(join_alone(open.path(), "").message().find("is open to other users"), std::string::npos);
  EXPECT_NE(join_alone(brief.path(), "").message().find("fewer than 16 bytes"), std::string::npos);
  EXPECT_NE(join_alone("/nonexistent", "").message().find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
