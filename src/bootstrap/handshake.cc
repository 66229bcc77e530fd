#include "src/bootstrap/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace tutti {
namespace {

constexpr std::uint64_t kMagic = 0x316f6c6c65486954;  // "TiHello1"
// Increment it when ranks of different versions could no longer work together. This covers the messages of joining, the
// frames, board and lanes in shared memory, the choices and lanes of plans, and the chunks and signatures of calls.
constexpr std::uint32_t kVersion = 14;

// Converts errno of a connection: a remote error if the peer process has ended, else a system error.
Status broken(const char* action) {
  const bool ended = errno == ECONNREFUSED || errno == ECONNRESET || errno == EPIPE;
  Status status = system_error(action);
  return ended ? Status(Code::remote, status.message(), status.os_error()) : std::move(status);
}

Status check_magic(std::uint64_t magic) {
  if (magic == kMagic) return {};
  return invalid_usage("the program at the other end is not Tutti: it does not send a handshake (wrong magic number)");
}

}  // namespace

Result<Handshake> Handshake::connect(Socket socket, const Claim& claim, const Credentials& credentials,
                                     const JoinRecord& own) {
  Handshake made;
  made.socket_ = std::move(socket);
  made.credentials_ = credentials;
  made.claim_ = claim;
  made.connects_ = true;
  made.hello_ = {kMagic, kVersion, claim.role, claim.rank, claim.ranks, claim.server, 0, credentials.communicator, {}};
  made.proof_.record = own;
  TUTTI_CHECK_OK(fill_randomly(std::as_writable_bytes(std::span(made.hello_.nonce))));
  return made;
}

Result<Handshake> Handshake::answer(Socket socket, Role role, Rank server, const Credentials& credentials) {
  Handshake made;
  made.socket_ = std::move(socket);
  made.credentials_ = credentials;
  made.claim_.role = role;
  made.claim_.server = server;
  made.answer_.magic = kMagic;
  TUTTI_CHECK_OK(fill_randomly(std::as_writable_bytes(std::span(made.answer_.nonce))));
  return made;
}

short Handshake::events() const { return connects_ && stage_ == Stage::hello ? POLLOUT : POLLIN; }

Result<bool> Handshake::advance() {
  TUTTI_CHECK_OK(connects_ ? advance_connect() : advance_answer());
  return stage_ == Stage::done;
}

Status Handshake::advance_connect() {
  if (stage_ == Stage::hello) {
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error != 0) {
      errno = error;
      return broken("connect");
    }
    TUTTI_CHECK_OK(send(bytes_of(hello_)));
    stage_ = Stage::answer;
  }
  const bool answered = TUTTI_TRY(receive(std::as_writable_bytes(std::span(&answer_, 1))));
  if (received_ >= sizeof answer_.magic || answered) TUTTI_CHECK_OK(check_magic(answer_.magic));
  if (!answered) return {};
  if (!equal(answer_.mac, server_mac())) {
    return invalid_usage(
        "the other end does not hold the same secret: TUTTI_SECRET_FILE differs, or the unique id is forged");
  }
  proof_.mac = client_mac();
  TUTTI_CHECK_OK(send(bytes_of(proof_)));
  stage_ = Stage::done;
  return {};
}

Status Handshake::advance_answer() {
  if (stage_ == Stage::hello) {
    const bool accepted = TUTTI_TRY(receive(std::as_writable_bytes(std::span(&hello_, 1))));
    if (received_ >= sizeof hello_.magic || accepted) TUTTI_CHECK_OK(check_magic(hello_.magic));
    if (!accepted) return {};
    TUTTI_CHECK_OK(accept_hello());
    answer_.mac = server_mac();
    TUTTI_CHECK_OK(send(bytes_of(answer_)));
    stage_ = Stage::proof;
  }
  const bool proved = TUTTI_TRY(receive(std::as_writable_bytes(std::span(&proof_, 1))));
  if (!proved) return {};
  if (!equal(proof_.mac, client_mac())) return invalid_usage("the caller does not hold the same secret");
  proof_.record.peer.hostname[sizeof proof_.record.peer.hostname - 1] = '\0';
  stage_ = Stage::done;
  return {};
}

// Performs cheap checks first, so that unauthenticated clients cost no cryptography.
Status Handshake::accept_hello() {
  if (hello_.version != kVersion) return invalid_usage("the caller runs another version of tutti");
  if (hello_.communicator != credentials_.communicator)
    return invalid_usage("the caller addressed another communicator");
  if (hello_.role != claim_.role || hello_.server != claim_.server)
    return invalid_usage("the caller addressed another rank");
  claim_.rank = hello_.rank;
  claim_.ranks = hello_.ranks;
  return {};
}

// Messages are smaller than any socket buffer, and at most one is in flight.
Status Handshake::send(Bytes bytes) {
  ssize_t count;
  do {
    count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(bytes.size())) return {};
  if (count >= 0) errno = EAGAIN;
  return broken("send a handshake");
}

Result<bool> Handshake::receive(std::span<std::byte> whole) {
  while (received_ < whole.size()) {
    const ssize_t count = ::recv(socket_.get(), whole.data() + received_, whole.size() - received_, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (count < 0) return broken("receive a handshake");
    if (count == 0) return remote_error("the other end closed the connection during the handshake");
    received_ += static_cast<std::size_t>(count);
  }
  received_ = 0;
  return true;
}

Digest Handshake::server_mac() const {
  return digest(credentials_.key, {bytes_of("server"), bytes_of(hello_), bytes_of(answer_.nonce)});
}

Digest Handshake::client_mac() const {
  return digest(credentials_.key,
                {bytes_of("client"), bytes_of(hello_), bytes_of(answer_.nonce), bytes_of(proof_.record)});
}

AcceptedPeer Handshake::finish() && {
  TUTTI_ASSERT(stage_ == Stage::done);
  const Digest session = digest(credentials_.key, {bytes_of("session"), bytes_of(hello_), bytes_of(answer_.nonce)});
  return {claim_, proof_.record, std::move(socket_), session, connects_};
}

}  // namespace tutti
