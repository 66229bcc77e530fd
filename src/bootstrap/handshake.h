// Mutual authentication of a new connection: both ends prove that they hold the secret before they trust any data.
//   caller: Hello {who calls whom, nonce}   answerer: Answer {nonce, MAC}   caller: Proof {its record, MAC}
// Each MAC covers all messages so far, which prevents alteration, replay and reflection.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/rank.h"
#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/peer_record.h"
#include "src/bootstrap/secrets.h"

namespace tutti {

enum class Role : std::uint32_t {
  join = 1,        // A rank calls the rendezvous.
  tree = 2,        // A rank calls its parent in the tree.
  mesh = 3,        // A rank calls a lower rank on its host.
  invitation = 4,  // A rank of a launcher asks rank 0 for the unique id.
  peer = 5,        // A rank calls a lower rank on another host.
  message = 6,     // A rank calls a rank to which it sends a message with a tag.
};

inline constexpr Rank kRendezvous = ~Rank{0};

// Identity and purpose of a connection: caller, callee, role.
struct Claim {
  Role role = Role::join;
  Rank rank = 0;
  Rank ranks = 0;
  Rank server = kRendezvous;
};

struct Credentials {
  Secret key;
  CommunicatorId communicator;
};

// Data of the caller, sent with its proof.
struct JoinRecord {
  PeerRecord peer;
  Address tree;  // Address at which it accepts its children in the tree.
  std::int64_t timeout_ms = 0;
  std::uint32_t one_host_per_rank = 0;  // 1: treats every rank as a host of its own.
  std::uint32_t protection = 0;         // Protection of peer sockets, see JoinOptions.
};
static_assert(sizeof(JoinRecord) == 208);

// Message of the rendezvous to a rank when all ranks have joined.
struct GoRecord {
  JoinRecord parent;
  std::int64_t left_ms = 0;  // Time until the rendezvous gives up; 0: no limit.
};
static_assert(sizeof(GoRecord) == 216);

// The process that runs the rendezvous.
struct HostRecord {
  PeerRecord process;
  Rank rank = kRendezvous;  // A rank of that process; kRendezvous if none has joined yet.
  std::uint32_t reserved = 0;
};
static_assert(sizeof(HostRecord) == 176);

// A connection after a complete handshake.
struct AcceptedPeer {
  Claim claim;        // Claim of the caller.
  JoinRecord record;  // Record of the caller.
  Socket socket;
  Secret session;  // Key material of this connection only.
  bool opened_by_us = false;
};

class Handshake {
 public:
  static Result<Handshake> connect(Socket socket, const Claim& claim, const Credentials& credentials,
                                   const JoinRecord& own);
  // Accepts only callers with this role that address this server.
  static Result<Handshake> answer(Socket socket, Role role, Rank server, const Credentials& credentials);

  // Returns true once the handshake is complete. Does not wait. Errors are final.
  Result<bool> advance();
  AcceptedPeer finish() &&;

  int descriptor() const { return socket_.get(); }
  short events() const;
  bool connects() const { return connects_; }
  const Claim& claim() const { return claim_; }
  // True if the caller has addressed this server and knows that it holds the secret, but has not yet proved its own.
  bool awaits_proof() const { return stage_ == Stage::proof; }

 private:
  struct Hello {
    std::uint64_t magic = 0;
    std::uint32_t version = 0;
    Role role = Role::join;
    Rank rank = 0, ranks = 0, server = 0;
    std::uint32_t reserved = 0;
    CommunicatorId communicator{};
    std::array<std::uint8_t, 32> nonce{};
  };
  static_assert(sizeof(Hello) == 80);
  struct Answer {
    std::uint64_t magic = 0;
    std::array<std::uint8_t, 32> nonce{};
    Digest mac{};
  };
  static_assert(sizeof(Answer) == 72);
  struct Proof {
    JoinRecord record;
    Digest mac{};
  };
  static_assert(sizeof(Proof) == 240);
  enum class Stage : std::uint8_t { hello, answer, proof, done };

  Status advance_connect();
  Status advance_answer();
  Status accept_hello();
  Status send(Bytes bytes);
  Result<bool> receive(std::span<std::byte> whole);  // True once all bytes have arrived.
  Digest server_mac() const;
  Digest client_mac() const;

  Socket socket_;
  Credentials credentials_{};
  Claim claim_;
  bool connects_ = false;
  Stage stage_ = Stage::hello;
  Hello hello_;
  Answer answer_;
  Proof proof_;
  std::size_t received_ = 0;  // Bytes of the incoming message so far.
};

}  // namespace tutti
