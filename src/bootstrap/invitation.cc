// Distribution of rank 0's unique id to the other ranks of a launcher.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/log.h"
#include "src/bootstrap/acceptor.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/channel.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/rendezvous_thread.h"

namespace tutti {
namespace {

constexpr std::int64_t kFirstPauseMs = 2;
constexpr std::int64_t kMaxPauseMs = 100;
// Timeout for another rank 0, which answers at once; other programs may never answer.
constexpr std::int64_t kDuplicateMs = 1000;
constexpr std::int64_t kDoubtMs = 2000;  // Delay after which a rank with a doubtful rendezvous address logs a warning.

constexpr const char* kClosed =
    ": a program accepted the connection and closed it; it is another program than Tutti, or another version, or rank "
    "0, which failed to join; see its log";

std::string name_of(const RendezvousPoint& point) {
  return point.host.empty() ? "tutti." + point.job : point.host + ":" + std::to_string(point.port);
}

// True if the host is a name for this host on every machine.
bool leads_to_itself(const RendezvousPoint& point) {
  return point.host == "localhost" || point.host.starts_with("127.") || point.host == "::1";
}

// If the host's own name resolves to loopback, rank 0 listens on the address that other hosts reach.
Result<Address> address_of(const RendezvousPoint& point, const std::string& ifname) {
  Result<Address> resolved = resolve(point.host, point.port);
  if (!resolved.ok()) {
    const std::string source = point.variable.empty() ? "the host of rank 0" : point.variable;
    return Status(Code::system, source + " names a host without address: " + std::move(resolved).status().message() +
                                    "; use a name or an address that all hosts resolve");
  }
  Address address = resolved.value();
  if (is_loopback(address) && !leads_to_itself(point)) address = TUTTI_TRY(own_address(ifname));
  address.port = point.port;
  return address;
}

Result<SocketAddress> endpoint_of(const RendezvousPoint& point, const std::string& ifname) {
  // Ranks on one host need no interface. Check the name anyway, so that errors show before a run on several hosts.
  if (!ifname.empty() && !ifname.starts_with('^')) TUTTI_CHECK_OK(own_address(ifname).status());
  SocketAddress endpoint;
  endpoint.type = SOCK_STREAM;
  if (!point.host.empty()) {
    endpoint.address = TUTTI_TRY(address_of(point, ifname));
    return endpoint;
  }
  constexpr std::size_t max_bytes = 100;  // The system allows 107; job names may be longer.
  const Digest whole = digest({}, {bytes_of(name_of(point))});
  endpoint.unix_name = name_of(point);
  if (endpoint.unix_name.size() > max_bytes) {
    endpoint.unix_name.resize(max_bytes - 16);
    for (std::size_t i = 0; i < 16; ++i) endpoint.unix_name += static_cast<char>('a' + whole[i] % 26);
  }
  return endpoint;
}

Result<Credentials> credentials_of(const RendezvousPoint& point, const std::string& secret_file) {
  Credentials credentials{};
  credentials.key = TUTTI_TRY(invitation_key(secret_file));
  const Digest whole = digest({}, {bytes_of(name_of(point))});
  std::copy_n(whole.begin(), credentials.communicator.size(), credentials.communicator.begin());
  return credentials;
}

// Advice for duplicate ranks: two jobs may share a rendezvous address.
std::string two_jobs_at(const RendezvousPoint& point) {
  if (!point.host.empty()) return "; if these are two jobs, each needs a port of its own";
  return "; if these are two jobs, set TUTTI_ROOT to host:port, a different one for each job";
}

// Adds the origin of a port that the user has not set directly.
Status explain_port(Status status, const RendezvousPoint& point) {
  if (!status.ok() && point.variable.starts_with("SLURM_")) {
    return {status.code(), status.message() + "; host and port come from " + point.variable +
                               " and SLURM_JOB_ID: set TUTTI_ROOT to host:port to choose others"};
  }
  if (status.ok() || point.variable != "MASTER_ADDR") return status;
  const std::string given = std::to_string(point.port - 1);
  return {status.code(), status.message() + "; it is the port after MASTER_PORT, since the launcher itself has " +
                             given + ": set another MASTER_PORT (torchrun --master-port), or TUTTI_ROOT to host:port"};
}

struct Caller {
  Claim claim;
  Credentials credentials;
};

// If another program holds the port, it sends no handshake, disconnects or does not answer until the deadline.
Result<AcceptedPeer> complete_handshake(const SocketAddress& endpoint, Handshake handshake, const Watch& watch) {
  Acceptor acceptor(handshake.claim().rank);
  acceptor.connect(std::move(handshake));
  std::vector<pollfd> polled;
  bool is_connected = false;
  for (;;) {
    std::vector<AcceptedPeer> accepted = acceptor.take();
    if (!accepted.empty()) return std::move(accepted.front());
    if (watch.aborted() || watch.deadline.passed()) {
      if (!is_connected) return Status(Code::system, describe(endpoint) + " does not answer", ETIMEDOUT);
      return timeout_error(describe(endpoint) +
                           " accepted the connection, but does not answer: rank 0 is stopped, or another program than "
                           "Tutti listens there");
    }
    polled.clear();
    acceptor.watch(polled);
    is_connected = polled.front().events == POLLIN;  // The caller has sent its hello.
    ::poll(polled.data(), polled.size(), watch.poll_ms());
    TUTTI_CHECK_OK(acceptor.serve(polled));
  }
}

// Process that listens at the other end of a unix socket; 0: unknown, as over TCP.
pid_t listener_of(const Socket& socket) {
  ucred credentials = {};
  socklen_t length = sizeof credentials;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 ? credentials.pid : 0;
}

// Called by a rank 0 that cannot listen at the rendezvous address. Fails if the process that listens there proves to be
// rank 0 of a job with the same rendezvous address and secret.
Status check_for_duplicate(const RendezvousPoint& point, const SocketAddress& endpoint,
                           const RendezvousOptions& options) {
  const Watch watch = {Deadline::after_ms(kDuplicateMs)};
  JoinRecord own;
  own.peer = TUTTI_TRY(own_record());
  const Credentials credentials = TUTTI_TRY(credentials_of(point, options.secret_file));
  Result<Socket> socket = open_socket_for(endpoint);
  if (!socket.ok() || !connect(socket.value(), endpoint).ok()) return {};
  const pid_t listener = listener_of(socket.value());
  auto handshake =
      Handshake::connect(std::move(socket).value(), {Role::invitation, 0, 1, kRendezvous}, credentials, own);
  if (!handshake.ok() || !complete_handshake(endpoint, std::move(handshake).value(), watch).ok()) return {};
  if (listener == ::getpid())
    return invalid_usage("this process already waits at " + describe(endpoint) + " for the ranks of a communicator");
  PeerRecord duplicate = own.peer;
  duplicate.pid = static_cast<std::uint32_t>(listener);
  return invalid_usage("rank 0 was started twice: this process (" + describe(own.peer) + ") has rank 0, and so has " +
                       (listener == 0 ? "the process that" : describe(duplicate) + ", which") + " listens at " +
                       describe(endpoint) + "; give each process a rank of its own" + two_jobs_at(point));
}

Result<UniqueId> invite(const RendezvousPoint& point, const SocketAddress& endpoint, const RendezvousOptions& options) {
  Address address = endpoint.unix_name.empty() ? endpoint.address : loopback_address();
  address.port = 0;
  if (endpoint.unix_name.empty() && options.secret_file.empty()) {  // TCP does not identify the caller.
    log(LogLevel::warn, "any process that can connect to %s can join%s; set TUTTI_SECRET_FILE to prevent that",
        describe(endpoint).c_str(), is_loopback(address) ? ", also one of another user of this host" : "");
  }
  Invitation invitation;
  Result<Socket> listener = listen_at(endpoint);
  if (!listener.ok()) {
    TUTTI_CHECK_OK(check_for_duplicate(point, endpoint, options));
    return explain_port(std::move(listener).status(), point);
  }
  invitation.listener = std::move(listener).value();
  invitation.credentials = TUTTI_TRY(credentials_of(point, options.secret_file));
  invitation.advice = advice_for(point);
  invitation.two_jobs = two_jobs_at(point);
  return start_rendezvous(options, address, std::move(invitation));
}

Result<UniqueId> ask(Socket socket, const SocketAddress& endpoint, const Caller& caller, const Watch& watch) {
  TUTTI_CHECK_OK(connect(socket, endpoint));
  Handshake handshake = TUTTI_TRY(Handshake::connect(std::move(socket), caller.claim, caller.credentials, {}));
  AcceptedPeer accepted = TUTTI_TRY(complete_handshake(endpoint, std::move(handshake), watch));
  ControlChannel channel(std::move(accepted));
  while (!watch.aborted() && !watch.deadline.passed()) {
    pollfd polled = {channel.descriptor(), POLLIN, 0};
    ::poll(&polled, 1, watch.poll_ms());
    Result<std::optional<ReceivedMessage>> received = channel.receive(sizeof(UniqueId));
    if (!received.ok()) return std::move(received).status();
    if (!received.value()) continue;
    const ReceivedMessage& message = *received.value();
    UniqueId id;
    if (message.kind != Message::id || message.payload.size() != sizeof id) {
      return invalid_usage(describe(endpoint) + " sent no valid unique id");
    }
    std::memcpy(&id, message.payload.data(), sizeof id);
    TUTTI_CHECK_OK(check(id));
    return id;
  }
  return timeout_error(describe(endpoint) + " sent no unique id");
}

// Returns whether the failure of ask() means that a connection was accepted and closed.
bool was_closed(const Status& unanswered) {
  return unanswered.code() == Code::remote && unanswered.os_error() != ECONNREFUSED;
}

}  // namespace

Result<UniqueId> share_unique_id(const LaunchedRank& launched, const RendezvousOptions& options, const Watch& watch) {
  const SocketAddress endpoint = TUTTI_TRY(endpoint_of(launched.point, options.socket_ifname));
  if (launched.rank == 0) return invite(launched.point, endpoint, options);
  Caller caller = {{Role::invitation, launched.rank, launched.ranks, kRendezvous}, {}};
  caller.credentials = TUTTI_TRY(credentials_of(launched.point, options.secret_file));
  const std::string asking = "asking rank 0 for the unique id at " + describe(endpoint);
  Deadline report = Deadline::after_ms(leads_to_itself(launched.point) ? std::min(kDoubtMs, options.report_after_ms)
                                                                       : options.report_after_ms);
  const std::string absence =
      ": rank 0 has not started, failed to join (see its log), or all ranks have joined already" +
      advice_for(launched.point);
  std::string reason = absence;
  for (std::int64_t pause_ms = kFirstPauseMs;; pause_ms = std::min(2 * pause_ms, kMaxPauseMs)) {
    Result<Socket> socket = open_socket_for(endpoint);
    if (!socket.ok()) return std::move(socket).status().during(asking);
    Result<UniqueId> asked = ask(std::move(socket).value(), endpoint, caller, watch);
    if (asked.ok()) return asked;
    Status status = std::move(asked).status();
    // Not yet started, or just ended.
    const bool absent = status.code() == Code::system || status.code() == Code::remote;
    if (watch.aborted())
      return aborted_error("rank " + std::to_string(launched.rank) + " aborted while it asked for the unique id");
    if (!absent) return std::move(status).during(asking);
    // An attempt that the deadline ended says nothing new.
    if (was_closed(status)) reason = kClosed;
    else if (status.os_error() != ETIMEDOUT) reason = absence;
    if (watch.deadline.passed()) return timeout_error(status.message() + "; while " + asking + reason);
    if (report.passed()) {
      log(LogLevel::warn, "rank %u is still %s: %s%s", launched.rank, asking.c_str(), status.message().c_str(),
          reason.c_str());
      report = {};
    }
    ::poll(nullptr, 0, static_cast<int>(std::min<std::int64_t>(pause_ms, watch.poll_ms())));
  }
}

// Without a host, ranks meet at an abstract socket. Its name contains the user and the job, or the parent process as
// each rank sees it.
std::string advice_for(const RendezvousPoint& point) {
  if (leads_to_itself(point))
    return "; " + point.host + " works on one host only; for several hosts set " +
           (point.variable == "MASTER_ADDR" ? "MASTER_ADDR to" : "TUTTI_ROOT to host:port,") +
           " an address of rank 0 that they can reach";
  if (!point.host.empty()) return "";
  return std::string("; are the ranks of several ") + (point.by_parent ? "shells, " : "") +
         "users, containers or namespaces? Then set TUTTI_ROOT to host:port of rank 0 on all of them";
}

}  // namespace tutti
