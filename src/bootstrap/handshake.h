// How the two ends of a new connection prove to each other that they hold the secret, before either believes anything:
//   caller: Hello {who calls whom, nonce}   answerer: Answer {nonce, MAC}   caller: Proof {its record, MAC}
// The MACs cover all that was said, so nothing can be altered, replayed, or sent back to its author.
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
};

inline constexpr Rank kRendezvous = ~Rank{0};

// Who calls whom, and to what end.
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

// What a caller tells of itself.
struct JoinRecord {
  PeerRecord peer;
  Address tree;  // Where it awaits its children.
  std::int64_t timeout_ms = 0;
  std::uint32_t apart = 0;       // 1: it counts every rank as a host of its own.
  std::uint32_t protection = 0;  // Of what goes over its wires, see JoinOptions.
};
static_assert(sizeof(JoinRecord) == 232);

// What the rendezvous tells a rank when all have come.
struct GoRecord {
  JoinRecord parent;
  std::int64_t left_ms = 0;  // Until it gives up; 0: never.
};
static_assert(sizeof(GoRecord) == 240);

// The process that runs the rendezvous.
struct HostRecord {
  PeerRecord process;
  Rank rank = kRendezvous;  // A rank of that process; kRendezvous: none has joined yet.
  std::uint32_t reserved = 0;
};
static_assert(sizeof(HostRecord) == 200);

// A connection whose other end is known.
struct Greeted {
  Claim claim;        // The caller's.
  JoinRecord record;  // Likewise.
  Socket socket;
  Secret session;  // Of this connection alone.
  bool called = false;
};

class Handshake {
 public:
  static Result<Handshake> call(Socket socket, const Claim& claim, const Credentials& credentials,
                                const JoinRecord& own);
  // Accepts only callers of this role that mean this server.
  static Result<Handshake> answer(Socket socket, Role role, Rank server, const Credentials& credentials);

  // Whether it is complete. Does not wait. An error is final.
  Result<bool> advance();
  Greeted finish() &&;

  int descriptor() const { return socket_.get(); }
  short events() const;
  bool calls() const { return calls_; }
  const Claim& claim() const { return claim_; }
  // The caller means us, knows that we hold the secret, and has yet to prove that it does.
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
    std::array<std::uint8_t, 32> nonce{};
    Digest mac{};
  };
  static_assert(sizeof(Answer) == 64);
  struct Proof {
    JoinRecord record;
    Digest mac{};
  };
  static_assert(sizeof(Proof) == 264);
  enum class Stage : std::uint8_t { hello, answer, proof, done };

  Status advance_call();
  Status advance_answer();
  Status accept_hello();
  Status send(Bytes bytes);
  Result<bool> receive(std::span<std::byte> whole);  // Whether all of it is there.
  Digest server_mac() const;
  Digest client_mac() const;

  Socket socket_;
  Credentials credentials_{};
  Claim claim_;
  bool calls_ = false;
  Stage stage_ = Stage::hello;
  Hello hello_;
  Answer answer_;
  Proof proof_;
  std::size_t received_ = 0;  // Of the message that is coming.
};

}  // namespace tutti
