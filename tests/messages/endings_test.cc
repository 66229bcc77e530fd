// End of requests without a message: cancellation, departure and death of ranks, failure of the communicator.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

#include "tests/messages/message_endpoints.h"

namespace tutti::test {
namespace {

const std::string kLeft =
    " left the communicator on test: complete all messages with a rank before it finalizes or destroys the "
    "communicator";
const std::string kHasLeft = " has" + kLeft, kHaveLeft = " have" + kLeft;

std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// Reads from a socket until the other end closes it. Returns the number of bytes.
std::size_t read_to_end(const Socket& socket) {
  std::vector<std::byte> buffer(1 << 16);
  for (std::size_t total = 0;;) {
    Party::await(socket.get(), POLLIN);
    const ssize_t bytes = ::read(socket.get(), buffer.data(), buffer.size());
    if (bytes <= 0) return total;
    total += static_cast<std::size_t>(bytes);
  }
}

TEST(Cancel, EndsReceive_WithoutTakingMessage) {
  const Party party(2);
  const auto cancelled = receive(party[1], 0, 1, 5);
  EXPECT_TRUE(party[1].cancel(*cancelled->request));
  EXPECT_EQ(cancelled->outcome(), "irecv(5 int32, from rank 0, tag 1) was cancelled");
  EXPECT_EQ(cancelled->request->status().code(), Code::aborted);
  const auto sent = send(party[0], 1, 1, numbers(5));
  const auto received = receive(party[1], 0, 1, 5);
  EXPECT_EQ(received->outcome(), "ok");
  EXPECT_EQ(received->values, sent->values);
  EXPECT_TRUE(party[1].cancel(*received->request));
}

TEST(Cancel, WithdrawsLargeSend_SoThatNextMessageMatches) {
  const Party party(2);
  const auto cancelled = send(party[0], 1, 1, numbers(kLargestEager + 1));
  await_arrival(party[1], 0, 1);
  EXPECT_TRUE(party[0].cancel(*cancelled->request));
  EXPECT_EQ(cancelled->request->status().code(), Code::aborted);
  const auto sent = send(party[0], 1, 1, numbers(5));
  const auto marker = send(party[0], 1, 2, {});
  await_arrival(party[1], 0, 2);
  const auto received = receive(party[1], 0, 1, 5);
  EXPECT_EQ(received->outcome(), "ok");
  EXPECT_EQ(received->values, sent->values);
}

TEST(Cancel, WithdrawsLargeSendToSelf) {
  const Party party(1);
  const auto cancelled = send(party[0], 0, 1, numbers(kLargestEager + 1));
  EXPECT_TRUE(party[0].cancel(*cancelled->request));
  EXPECT_FALSE(party[0].probe(0, 1).value());
}

TEST(Leave, DeliversEarlierMessages_ThenEndsRequests) {
  Party party(2);
  const auto large = receive(party[1], 0, 1, kLargestEager + 1);
  const auto sent = send(party[0], 1, 1, numbers(kLargestEager + 1));
  EXPECT_EQ(large->outcome(), "ok");
  EXPECT_EQ(sent->outcome(), "ok");
  const auto small = send(party[0], 1, 2, numbers(5));
  EXPECT_EQ(small->outcome(), "ok");
  const auto pending = receive(party[1], 0, 3, 5);
  party.leave(0);
  EXPECT_EQ(pending->outcome(), "rank 0" + kHasLeft);
  EXPECT_EQ(pending->request->status().code(), Code::remote);
  const auto received = receive(party[1], 0, 2, 5);
  EXPECT_EQ(received->outcome(), "ok");
  EXPECT_EQ(received->values, small->values);
  const MessageCall late = {MessageDirection::receive, 0, 3, 0, DataType::int32, nullptr};
  EXPECT_EQ(party[1].receive(late).status().message(), "rank 0" + kHasLeft);
  EXPECT_EQ(party[1].probe(0, 3).status().message(), "rank 0" + kHasLeft);
  EXPECT_TRUE(party.failure().ok());
}

TEST(Leave, EndsRequests_WhenNoMessageWasExchanged) {
  Party party(2);
  const auto received = receive(party[1], 0, 1, 5);
  party.leave(0);
  EXPECT_EQ(received->outcome(), "rank 0" + kHasLeft);
  const MessageCall late = {MessageDirection::send, 0, 1, 0, DataType::int32, nullptr};
  EXPECT_EQ(party[1].send(late).status().message(), "rank 0" + kHasLeft);
  EXPECT_TRUE(party.failure().ok());
}

// Rank 0 still accepts links after it has left, until all ranks have.
TEST(Leave, EndsRequestsOfLinkThatIsOpenedLater) {
  Party party(2);
  party[0].finish();
  const auto sent = send(party[1], 0, 1, numbers(kLargestEager + 1));
  EXPECT_EQ(sent->outcome(), "rank 0" + kHasLeft);
  EXPECT_TRUE(party.failure().ok());
}

TEST(Leave, EndsReceivesFromAnyRank_WhenAllOtherRanksHaveLeft) {
  Party party(3);
  const auto early = send(party[0], 2, 1, numbers(5));
  EXPECT_EQ(early->outcome(), "ok");
  const auto any = receive(party[2], kAnyRank, 2, 5), named = receive(party[2], 0, 3, 5);
  party.leave(0);
  EXPECT_EQ(named->outcome(), "rank 0" + kHasLeft);
  EXPECT_FALSE(any->request->complete());
  party.leave(1);
  const std::string text = "all other ranks" + kHaveLeft;
  EXPECT_EQ(any->outcome(), text);
  EXPECT_EQ(any->request->status().code(), Code::remote);
  const MessageCall late = {MessageDirection::receive, kAnyRank, 2, 0, DataType::int32, nullptr};
  EXPECT_EQ(party[2].receive(late).status().message(), text);
  EXPECT_EQ(party[2].probe(kAnyRank, 2).status().message(), text);
  EXPECT_EQ(receive(party[2], kAnyRank, 1, 5)->outcome(), "ok");
  EXPECT_TRUE(party.failure().ok());
}

TEST(Leave, EndsProbesForAnyRank_WhenAllOtherRanksHaveLeft) {
  Party party(3);
  EXPECT_FALSE(party[2].probe(kAnyRank, 1).value());
  party.leave(0);
  party.leave(1);
  const Deadline hang = Deadline::after_ms(kHangMs);
  while (!hang.passed() && party[2].probe(kAnyRank, 1).ok()) std::this_thread::yield();
  EXPECT_EQ(party[2].probe(kAnyRank, 1).status().message(), "all other ranks" + kHaveLeft);
}

// Rank 0 never accepted links, so that rank 1 tries to open one again and again.
TEST(Leave, EndsAttemptsToOpenLink) {
  Party party(2);
  party.close(0);
  const auto sent = send(party[1], 0, 1, numbers(5));
  party.leave(0);
  EXPECT_EQ(sent->outcome(), "rank 0" + kHasLeft);
  const Deadline hang = Deadline::after_ms(kHangMs);
  while (party[1].deadline().at_ns != Deadline{}.at_ns && !hang.passed()) std::this_thread::yield();
  EXPECT_EQ(party[1].deadline().at_ns, Deadline{}.at_ns);
  EXPECT_TRUE(party.failure().ok());
}

TEST(Leave, RefusesFurtherMessages) {
  const Party party(2);
  party[0].finish();
  const std::string text = "the communicator on test has ended: start messages before you finalize or destroy it";
  for (const auto direction : {MessageDirection::send, MessageDirection::receive}) {
    const MessageCall late = {direction, 1, 3, 0, DataType::int32, nullptr};
    const Status status = (direction == MessageDirection::send ? party[0].send(late) : party[0].receive(late)).status();
    EXPECT_EQ(status.message(), text);
    EXPECT_EQ(status.code(), Code::invalid_usage);
  }
}

TEST(Leave, EndsOwnRequestsAsInvalidUsage) {
  Party party(2);
  const auto received = receive(party[0], kAnyRank, 1, 5);
  const auto sent = send(party[0], 1, 1, numbers(kLargestEager + 1));
  await_arrival(party[1], 0, 1);
  party.leave(0);
  EXPECT_EQ(received->outcome(),
            "irecv(5 int32, from any rank, tag 1) was not complete when the communicator on test ended: wait for "
            "requests before you finalize or destroy it");
  EXPECT_EQ(received->request->status().code(), Code::invalid_usage);
  EXPECT_EQ(sent->request->status().code(), Code::invalid_usage);
  EXPECT_EQ(receive(party[1], 0, 1, kLargestEager + 1)->outcome(), "rank 0" + kHasLeft);
}

// Rank 1 sends a message, and the header and the first element of another.
TEST(Leave, EndsReceiveInProgressAsInvalidUsage) {
  Party party(2);
  party.close(1);
  const AcceptedPeer sender = party.call(1, 0);
  const auto received = receive(party[0], 1, 1, 5);
  const MessageFrame frames[] = {frame_of(MessageFrameKind::eager, 2, 0), frame_of(MessageFrameKind::eager, 1, 5)};
  std::vector<std::byte> bytes(sizeof frames + sizeof(std::int32_t));
  std::memcpy(bytes.data(), frames, sizeof frames);
  ASSERT_EQ(::write(sender.socket.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  await_arrival(party[0], 1, 2);
  std::thread reader([&sender] { read_to_end(sender.socket); });
  party.leave(0);
  reader.join();
  EXPECT_EQ(received->outcome(),
            "irecv(5 int32, from rank 1, tag 1) was not complete when the communicator on test ended: wait for "
            "requests before you finalize or destroy it");
  EXPECT_EQ(received->request->status().code(), Code::invalid_usage);
}

// Rank 0 leaves while it receives elements.
TEST(Leave, EndsLinkInMessage_WithoutFurtherFrames) {
  constexpr std::size_t kCount = 4'000'000;  // More than the connection holds.
  Party party(2);
  party.close(0);
  const Socket listener = party.listen(0);
  const auto sent = send(party[1], 0, 1, numbers(kCount));
  const AcceptedPeer receiver = party.accept(listener, 0);
  write_frame(receiver.socket, frame_of(MessageFrameKind::welcome));
  MessageFrame frame = read_frame(receiver.socket);
  for (const MessageFrameKind kind : {MessageFrameKind::request, MessageFrameKind::goodbye}) {
    if (kind == MessageFrameKind::goodbye) frame = read_frame(receiver.socket);  // Header of the payload.
    frame.kind = kind;
    write_frame(receiver.socket, frame);
  }
  EXPECT_EQ(sent->outcome(), "rank 0" + kHasLeft);
  EXPECT_LT(read_to_end(receiver.socket), kCount * sizeof(std::int32_t));
}

TEST(Failure, EndsRequestsOfAllKinds) {
  Party party(2);
  const auto any = receive(party[1], kAnyRank, 1, 5);
  const auto large = send(party[1], 0, 2, numbers(kLargestEager + 1));
  await_arrival(party[0], 1, 2);
  party.fail(aborted_error("rank 0 aborted the communicator"));
  EXPECT_EQ(any->outcome(), "rank 0 aborted the communicator");
  EXPECT_EQ(large->outcome(), "rank 0 aborted the communicator");
  EXPECT_EQ(any->request->status().code(), Code::aborted);
  const MessageCall late = {MessageDirection::receive, 0, 3, 0, DataType::int32, nullptr};
  EXPECT_EQ(party[1].receive(late).status().code(), Code::aborted);
}

TEST(Failure, EndsProbes_WithoutRequests) {
  Party party(2);
  EXPECT_FALSE(party[1].probe(kAnyRank, 1).value());
  party.fail(aborted_error("rank 0 aborted the communicator"));
  const Deadline deadline = Deadline::after_ms(kHangMs);
  while (!deadline.passed() && party[1].probe(kAnyRank, 1).ok()) std::this_thread::yield();
  EXPECT_EQ(party[1].probe(kAnyRank, 1).status().code(), Code::aborted);
}

TEST(Failure, FailsCommunicator_WhenPeerClosesConnectionWithoutGoodbye) {
  Party party(3);
  EXPECT_EQ(send(party[0], 1, 1, numbers(5))->outcome(), "ok");
  await_arrival(party[1], 0, 1);
  const auto received = receive(party[1], 2, 1, 5);
  party.close(0);
  const std::string text = "rank 0 closed its connection for tagged messages; while exchanging tagged messages on test";
  EXPECT_EQ(received->outcome(), text);
  EXPECT_EQ(party.failure().message(), text);
  EXPECT_EQ(party.failure().code(), Code::remote);
}

TEST(Service, EndsThreadAndDescriptorsWithLastEndpoint) {
  const std::ptrdiff_t threads = entries_of("/proc/self/task");
  const std::ptrdiff_t descriptors = entries_of("/proc/self/fd");
  {
    const Party party(3);
    const auto received = receive(party[1], 0, 1, 5);
    EXPECT_EQ(send(party[0], 1, 1, numbers(5))->outcome(), "ok");
    EXPECT_EQ(received->outcome(), "ok");
    EXPECT_EQ(entries_of("/proc/self/task"), threads + 1);
  }
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  const Deadline deadline =
      Deadline::after_ms(kHangMs);  // The kernel removes the entry of a joined thread a little later.
  while (entries_of("/proc/self/task") != threads && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
}

}  // namespace
}  // namespace tutti::test
