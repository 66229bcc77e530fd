// Sockets between ranks: no sent frame is lost, and a rank that left a communicator does not count as dead.
#include "src/communicator/control/mesh.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "src/base/clock.h"
#include "src/communicator/control/proposals.h"
#include "tests/base/pipe.h"

namespace tutti::test {
namespace {

Frame frame_of(FrameKind kind, std::uint8_t mark = 0) {
  Frame frame;
  frame.kind = kind;
  frame.bytes = 1;
  frame.payload[0] = std::byte{mark};
  return frame;
}

// Two connected ranks. A test may destroy the second one first.
struct Ends {
  explicit Ends(const Hosts& hosts = Hosts::one_host(2)) {
    std::vector<Mesh> both = std::move(Mesh::within_process(hosts)).value();
    here.emplace(std::move(both[0]));
    there.emplace(std::move(both[1]));
  }
  std::optional<Mesh> here, there;
};

// Returns whether no process holds the writing end.
bool ended(const Pipe& pipe) {
  pollfd state = {pipe.reading.get(), 0, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLHUP) != 0;
}

// Returns the mark of the next frame, or -1 if there is none.
int next_mark(Mesh& mesh) {
  auto received = mesh.receive(1);
  if (!received.ok() || !received.value()) return -1;
  return std::to_integer<int>(received.value()->frame.payload[0]);
}

TEST(Mesh, DeliversFrames_SentBeforePeerLeft) {
  Ends ends;
  const Pipe pipe;
  ASSERT_TRUE(ends.there->send(0, frame_of(FrameKind::lane, 1)).ok());
  ASSERT_TRUE(ends.there->send(0, frame_of(FrameKind::board, 2), pipe.writing.get()).ok());
  ends.there->leave();
  ends.there.reset();
  EXPECT_EQ(ends.here->find_dead(), std::nullopt);
  ends.here->wait(1, 60'000);  // Returns at once, since there is data to read.
  EXPECT_EQ(next_mark(*ends.here), 1);
  auto board = ends.here->receive(1);
  ASSERT_TRUE(board.ok() && board.value());
  EXPECT_EQ(::write(board.value()->file.get(), "hi", 2), 2);
  EXPECT_EQ(next_mark(*ends.here), -1);
}

TEST(Mesh, DeliversFrames_SentBeforePeerDied) {
  Ends ends;
  ASSERT_TRUE(ends.there->send(0, frame_of(FrameKind::lane, 7)).ok());
  ends.there.reset();
  EXPECT_EQ(ends.here->find_dead(), std::optional<Rank>(1));
  EXPECT_EQ(next_mark(*ends.here), 7);
  EXPECT_EQ(ends.here->find_dead(), std::optional<Rank>(1));
}

// A peer that closes its socket with unread data resets the connection, and the kernel reports the reset before the
// peer's data. The goodbye of the peer must still be found.
TEST(Mesh, DoesNotReportDeath_WhenPeerLeftWithoutReading) {
  Ends ends;
  ASSERT_TRUE(ends.here->send(1, frame_of(FrameKind::lane)).ok());
  ASSERT_TRUE(ends.there->send(0, frame_of(FrameKind::lane, 3)).ok());
  ends.there->leave();
  ends.there.reset();
  EXPECT_EQ(ends.here->find_dead(), std::nullopt);
  EXPECT_EQ(next_mark(*ends.here), 3);
}

// One thread reads the goodbye of a peer while another looks for dead peers. The second thread must not report a death
// because the goodbye is gone from the socket.
TEST(Mesh, DoesNotReportDeath_WhileAnotherThreadReadsGoodbye) {
  for (int round = 0; round < 500; ++round) {
    Ends ends;
    std::atomic<int> started{0};
    std::optional<Rank> dead;
    std::thread reader([&] {
      ++started;
      while (started < 3) std::this_thread::yield();
      for (int i = 0; i < 20; ++i) (void)next_mark(*ends.here);
    });
    std::thread watcher([&] {
      ++started;
      while (started < 3) std::this_thread::yield();
      for (int i = 0; i < 20 && !dead; ++i) dead = ends.here->find_dead();
    });
    ends.there->leave();
    ends.there.reset();
    ++started;
    reader.join();
    watcher.join();
    ASSERT_EQ(dead, std::nullopt) << "round " << round;
  }
}

TEST(Mesh, DistinguishesFullFromBrokenSocket) {
  Ends ends;
  int sent = 0;
  while (sent < 100'000 && std::move(ends.here->try_send(1, frame_of(FrameKind::lane))).value()) ++sent;
  EXPECT_GE(sent, 100);
  ASSERT_LT(sent, 100'000);
  const Status full = ends.here->send(1, frame_of(FrameKind::lane));
  EXPECT_EQ(full.code(), Code::remote);
  EXPECT_NE(full.message().find("rank 1 has left so many control messages unread"), std::string::npos);
  for (int i = 0; i < sent; ++i) {
    auto received = ends.there->receive(0);
    ASSERT_TRUE(received.ok() && received.value()) << i;
  }
  EXPECT_TRUE(ends.here->send(1, frame_of(FrameKind::lane)).ok());
}

// Ranks of two hosts. The second one has created a contact for another communicator and sent it to the first one.
struct FurtherEnds : Ends {
  explicit FurtherEnds(FrameKind kind) : Ends(Hosts::one_rank_per_host(2)) {
    auto further = std::move(there->new_contact(0)).value();
    own = std::move(further.first);
    EXPECT_TRUE(there->send(0, frame_of(kind), further.second).ok());
  }
  ReceivedFrame receive() {
    for (;;) {
      auto received = std::move(here->receive(1)).value();
      if (received) return std::move(*received);
      here->wait(1, 60'000);
    }
  }
  // Sends data over the contact. Returns whether `here` keeps the data, which it drops once its contact has ended.
  bool keeps_what_comes() {
    there->connection(0).send(own.context(), std::as_bytes(std::span("a note")));
    EXPECT_TRUE(there->send(0, frame_of(FrameKind::lane, 9)).ok());
    while (next_mark(*here) != 9) here->wait(1, 60'000);
    return here->has_notes();
  }
  Contact own;
};

TEST(Contact, EndsWithItsOwner_InsideConnection) {
  for (const FrameKind kind : {FrameKind::socket, FrameKind::proposal}) {
    FurtherEnds ends(kind);
    ReceivedFrame received = ends.receive();
    ASSERT_TRUE(received.contact.is_remote());
    EXPECT_EQ(received.contact.context(), ends.own.context());
    Contact kept = std::move(received.contact);
    received = ReceivedFrame();
    EXPECT_TRUE(ends.keeps_what_comes());
    kept = Contact();
    EXPECT_FALSE(ends.keeps_what_comes());
  }
}

// After a failed split, frames may be received but not used. Their contacts must end.
TEST(Contact, Ends_WhenNotTakenFromItsFrame) {
  FurtherEnds ends(FrameKind::socket);
  (void)ends.receive();
  EXPECT_FALSE(ends.keeps_what_comes());
}

TEST(Contact, Ends_WithAbandonedProposal) {
  FurtherEnds ends(FrameKind::proposal);
  Proposals theirs, ours;
  const ExcludedList nobody = ExcludedList::of({});
  auto further = std::move(ends.there->new_contact(0)).value();
  ends.own = std::move(further.first);
  (void)ends.receive();
  ASSERT_TRUE(std::move(theirs.make(*ends.there, 0, nobody, further.second)).value());
  ASSERT_TRUE(ours.process(1, ends.receive()).ok());
  EXPECT_TRUE(ends.keeps_what_comes());
  ASSERT_TRUE(std::move(ours.make(*ends.here, 1, nobody, {})).value());
  ours.withdraw(*ends.here, 1, remote_error("it changed its mind"));
  EXPECT_FALSE(ends.keeps_what_comes());
}

// A mesh whose peer is the test itself, which violates the protocol.
struct MaliciousMeshPeer {
  MaliciousMeshPeer() {
    auto pair = std::move(open_socket_pair(SOCK_SEQPACKET)).value();
    std::vector<Contact> contacts(2);
    contacts[1] = Contact(std::move(pair.first));
    mesh.emplace(0, std::move(contacts), Hosts::one_host(2));
    end = std::move(pair.second);
  }
  // Sends the first `bytes` of a frame, with these descriptors.
  void send(const Frame& frame, std::size_t bytes, const std::vector<int>& descriptors) {
    iovec data = {const_cast<Frame*>(&frame), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(end.get(), &message, 0), static_cast<ssize_t>(bytes));
  }
  std::string refusal() { return mesh->receive(1).status().message(); }

  std::optional<Mesh> mesh;
  Socket end;
};

TEST(Mesh, RejectsFrame_WithoutItsDescriptor) {
  for (const FrameKind kind : {FrameKind::board, FrameKind::region, FrameKind::socket}) {
    MaliciousMeshPeer peer;
    peer.send(frame_of(kind), sizeof(Frame), {});
    EXPECT_EQ(peer.refusal(), "rank 1 sent a control message without its descriptor");
  }
}

TEST(Mesh, ClosesUnexpectedDescriptors) {
  for (const std::size_t count : {2, 3, 5}) {
    MaliciousMeshPeer peer;
    std::vector<Pipe> pipes(count);
    std::vector<int> descriptors;
    for (const Pipe& pipe : pipes) descriptors.push_back(pipe.writing.get());
    peer.send(frame_of(FrameKind::board), sizeof(Frame), descriptors);
    for (Pipe& pipe : pipes) pipe.writing.reset();
    EXPECT_EQ(peer.refusal(), "rank 1 sent several descriptors with one control message");
    for (const Pipe& pipe : pipes) EXPECT_TRUE(ended(pipe));
  }
}

TEST(Mesh, RejectsFramesOfOtherSizes) {
  Frame frame = frame_of(FrameKind::lane);
  MaliciousMeshPeer peer;
  peer.send(frame, sizeof frame - 1, {});
  EXPECT_NE(peer.refusal().find("another version of tutti"), std::string::npos);
  frame.bytes = frame.payload.size() + 1;
  peer.send(frame, sizeof frame, {});
  EXPECT_NE(peer.refusal().find("another version of tutti"), std::string::npos);
  frame = frame_of(FrameKind::goodbye);
  frame.version = 2;
  peer.send(frame, sizeof frame, {});
  EXPECT_NE(peer.refusal().find("another version of tutti"), std::string::npos);
}

TEST(Socket, IsInvalid_WithoutDescriptor) { EXPECT_FALSE(adopt_socket(-1)); }

class Abandonment : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Hosts, Abandonment, testing::Bool());

TEST_P(Abandonment, IsReportedWithReason_NotAsDeath) {
  Ends ends(GetParam() ? Hosts::one_rank_per_host(2) : Hosts::one_host(2));
  ends.there->abandon(timeout_error("rank 7 did not answer"));
  ends.there.reset();
  const Deadline deadline = Deadline::after_ms(60'000);
  while (!ends.here->find_dead() && !deadline.passed()) (void)ends.here->receive();
  ASSERT_EQ(ends.here->find_dead(), Rank{1});
  const Status death = ends.here->death(1, "outside of any call");
  EXPECT_EQ(death.code(), Code::timeout);
  EXPECT_EQ(death.message(), "rank 1 gave up creating this communicator: rank 7 did not answer");
  EXPECT_EQ(ends.here->abandonment(1).message(), "rank 7 did not answer");
}

// No peer reads, and the limit is 3 s for all peers together. Closing eight peers one after the other would take 24 s.
TEST(Mesh, ClosesAllConnectionsTogether_WhenNoPeerReads) {
  std::vector<Mesh> meshes = std::move(Mesh::within_process(Hosts::one_rank_per_host(9))).value();
  for (Rank peer = 1; peer < 9; ++peer) {
    for (int i = 0; i < 40'000; ++i) ASSERT_TRUE(meshes[0].send(peer, frame_of(FrameKind::lane)).ok());
  }
  const std::int64_t began_ns = now_ns();
  { const Mesh closed = std::move(meshes[0]); }
  EXPECT_LT(now_ns() - began_ns, 12'000'000'000);
}

}  // namespace
}  // namespace tutti::test
