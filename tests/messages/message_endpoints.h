// Endpoints of several ranks in this process, with a stand-in for their communicator.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

#include "src/bootstrap/address.h"
#include "src/messages/endpoint.h"
#include "src/messages/service.h"

namespace tutti::test {

constexpr std::int64_t kHangMs = 20'000;  // Turns a hang into a failure.

struct PartyOptions {
  bool over_tcp = false;
  Protection protection = Protection::none;
};

class Party {
 public:
  explicit Party(Rank ranks, const PartyOptions& options = {}) : options_(options), members_(ranks) {
    TUTTI_ASSERT(fill_randomly(std::as_writable_bytes(std::span(credentials_.key))).ok());
    for (Rank rank = 0; rank < ranks; ++rank) start(rank);
  }
  ~Party() {
    for (Rank rank = 0; rank < members_.size(); ++rank) close(rank);
  }

  MessageEndpoint& operator[](Rank rank) const { return *members_[rank].endpoint; }

  // Fails the communicator of all ranks.
  void fail(Status status) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
  }
  Status failure() {
    const std::lock_guard lock(mutex_);
    return {failure_.code(), failure_.message()};
  }
  void leave(Rank rank) {
    if (members_[rank].endpoint != nullptr) members_[rank].endpoint->finish();
    {
      const std::lock_guard lock(mutex_);
      members_[rank].left = true;
    }
    close(rank);
  }
  // Closes the sockets of a rank without a goodbye, as the death of its process does.
  void close(Rank rank) {
    if (members_[rank].endpoint != nullptr) members_[rank].endpoint->close();
    members_[rank].endpoint = nullptr;
  }
  // Creates the endpoint of a rank, which must be closed.
  void start(Rank rank) {
    std::vector<Socket> listeners;
    listeners.push_back(listen_anew(rank));
    MessageMembership membership;
    membership.rank = rank;
    membership.ranks = static_cast<Rank>(members_.size());
    membership.name = " on test";
    membership.credentials = credentials_;
    membership.protection = options_.protection;
    membership.is_remote = [this](Rank) { return options_.over_tcp; };
    membership.address = [this](Rank peer) -> Result<std::optional<SocketAddress>> {
      ++address_calls;
      EXPECT_TRUE(addresses.try_acquire_for(std::chrono::milliseconds(kHangMs))) << "a thread waits for an address";
      addresses.release();
      return std::optional(endpoint_of(peer));
    };
    membership.report_address = [this] { return ++reports >= kReports; };
    membership.failure = [this] { return failure(); };
    membership.fail = [this](Status status) {
      fail(std::move(status));
      return failure();
    };
    membership.has_left = [this](Rank peer) {
      const std::lock_guard lock(mutex_);
      return members_[peer].left;
    };
    members_[rank].endpoint = MessageEndpoint::create(membership, std::move(listeners), *service_).value();
    service_->add(members_[rank].endpoint);
  }
  // Listens in place of the endpoint of a rank, which must be closed.
  Socket listen(Rank rank) { return listen_anew(rank); }
  SocketAddress endpoint_of(Rank rank) {
    if (!options_.over_tcp) return {{}, hidden_name(credentials_.key, "test", rank), SOCK_STREAM};
    const std::lock_guard lock(mutex_);
    return {members_[rank].address, "", SOCK_STREAM};
  }
  // Opens a link of rank `from`, in place of its endpoint.
  AcceptedPeer call(Rank from, Rank to) {
    Socket socket = open_socket_for(endpoint_of(to)).value();
    TUTTI_ASSERT(connect(socket, endpoint_of(to)).ok());
    return complete_handshake(std::move(socket), from, to);
  }
  // Like call(), over a connected socket.
  AcceptedPeer complete_handshake(Socket socket, Rank from, Rank to) const {
    const Claim claim = {Role::message, from, static_cast<Rank>(members_.size()), to};
    return complete(Handshake::connect(std::move(socket), claim, credentials_, JoinRecord()).value());
  }
  // Accepts a link to `rank`, in place of its endpoint.
  AcceptedPeer accept(const Socket& listener, Rank rank) const {
    await(listener.get(), POLLIN);
    Socket socket = std::move(*accept_socket(listener).value());
    return complete(Handshake::answer(std::move(socket), Role::message, rank, credentials_).value());
  }
  static constexpr int kReports = 3;   // Attempts until the address of a rank is reported.
  std::binary_semaphore addresses{1};  // Endpoints get no addresses of peers while a test has acquired it.
  std::atomic<int> address_calls{0}, reports{0};

  // Waits until the descriptor is ready.
  static void await(int descriptor, short events) {
    pollfd polled = {descriptor, events, 0};
    TUTTI_ASSERT(::poll(&polled, 1, kHangMs) == 1);
  }

 private:
  static AcceptedPeer complete(Handshake handshake) {
    while (!handshake.advance().value()) await(handshake.descriptor(), handshake.events());
    return std::move(handshake).finish();
  }

  struct Member {
    std::shared_ptr<MessageEndpoint> endpoint;
    Address address;
    bool left = false;
  };

  Socket listen_anew(Rank rank) {
    if (!options_.over_tcp) {  // The name of a closed socket is in use until the service thread's poll() returns.
      Result<Socket> listener = listen_at(endpoint_of(rank));
      for (const Deadline hang = Deadline::after_ms(kHangMs); !listener.ok() && !hang.passed();)
        listener = listen_at(endpoint_of(rank));
      return std::move(listener).value();
    }
    Socket listener = listen_at({loopback_address(), "", SOCK_STREAM}).value();
    const std::lock_guard lock(mutex_);
    members_[rank].address = local_address(listener).value();
    return listener;
  }

  const PartyOptions options_;
  std::shared_ptr<MessageService> service_ = MessageService::of_process().value();
  Credentials credentials_{};
  std::mutex mutex_;
  Status failure_;
  std::vector<Member> members_;
};

// A buffer of int32 with its request.
struct Transfer {
  std::vector<std::int32_t> values;
  RequestPointer request;

  // Waits for the request. Returns "ok", or its error.
  std::string outcome() const {
    if (!request->wait(Deadline::after_ms(kHangMs))) return "hangs";
    const Status status = request->status();
    return status.ok() ? "ok" : std::string(status.message());
  }
};

inline std::unique_ptr<Transfer> send(MessageEndpoint& from, Rank to, std::uint64_t tag,
                                      std::vector<std::int32_t> values) {
  auto transfer = std::make_unique<Transfer>();
  transfer->values = std::move(values);
  transfer->request = from.send({MessageDirection::send, to, tag, transfer->values.size(), DataType::int32,
                                 reinterpret_cast<std::byte*>(transfer->values.data())})
                          .value();
  return transfer;
}

inline std::unique_ptr<Transfer> receive(MessageEndpoint& to, Rank from, std::uint64_t tag, std::size_t count) {
  auto transfer = std::make_unique<Transfer>();
  transfer->values.resize(count);
  transfer->request = to.receive({MessageDirection::receive, from, tag, count, DataType::int32,
                                  reinterpret_cast<std::byte*>(transfer->values.data())})
                          .value();
  return transfer;
}

// Waits until a message has arrived. Returns its number of elements.
inline std::uint64_t await_arrival(MessageEndpoint& endpoint, Rank from, std::uint64_t tag) {
  const Deadline deadline = Deadline::after_ms(kHangMs);
  while (!deadline.passed()) {
    if (const auto found = endpoint.probe(from, tag).value()) return found->count;
  }
  ADD_FAILURE() << "no message arrived";
  return 0;
}

inline std::vector<std::int32_t> numbers(std::size_t count, std::int32_t first = 0) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<std::int32_t>(i);
  return values;
}

inline MessageFrame frame_of(MessageFrameKind kind, std::uint64_t tag = 0, std::uint64_t count = 0) {
  MessageFrame frame;
  frame.kind = kind;
  frame.type = static_cast<std::uint32_t>(DataType::int32);
  frame.tag = tag;
  frame.count = count;
  return frame;
}

inline void write_frame(const Socket& socket, const MessageFrame& frame) {
  TUTTI_ASSERT(::write(socket.get(), &frame, sizeof frame) == static_cast<ssize_t>(sizeof frame));
}

inline MessageFrame read_frame(const Socket& socket) {
  MessageFrame frame;
  Party::await(socket.get(), POLLIN);
  TUTTI_ASSERT(::read(socket.get(), &frame, sizeof frame) == static_cast<ssize_t>(sizeof frame));
  return frame;
}

constexpr std::size_t kLargestEager = kMaxEagerBytes / sizeof(std::int32_t);

}  // namespace tutti::test
