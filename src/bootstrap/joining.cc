#include "src/bootstrap/joining.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/duration.h"

namespace tutti {
namespace {

// kGraceMs: time after the deadline for the rendezvous to report missing ranks. kAnswerMs: time for its answer to a
// question.
constexpr std::int64_t kGraceMs = 500;
constexpr std::int64_t kAnswerMs = 500;
constexpr std::int64_t kOutcomeMs = 1000;
constexpr std::int64_t kLastWordsMs = 500;
constexpr std::int64_t kEarlierMs = 1000;

}  // namespace

Joining::Joining(const UniqueId& id, Rank rank, Rank ranks, const JoinOptions& options)
    : id_(id),
      rank_(rank),
      ranks_(ranks),
      options_(options),
      acceptor_(rank, ranks),
      tree_(rank, ranks),
      records_(ranks),
      sockets_(ranks),
      peer_sockets_(ranks) {
  watch_.abort = options.abort;
  phase_ = "the rendezvous at " + describe(id.address) + ", in the process that made the unique id";
  if (options.timeout_ms > 0) watch_.deadline = Deadline::after_ms(options.timeout_ms + kGraceMs);
}

Status Joining::run() {
  Status status = take_steps();
  if (status.ok()) return status;
  const bool late = watch_.deadline.passed() && status.code() == Code::timeout;
  if (late && rendezvous_.connected() && !reported_) status = explain_silence(std::move(status));
  if (status.code() == Code::system && !reported_)  // All ranks report this failure, so it names the one that failed.
    status = std::move(status).during("rank " + std::to_string(rank_) + " was joining");
  // A process that dies closes its connections in any order. The rendezvous, which can name it, may notice last.
  if (status.code() == Code::remote && rendezvous_.connected() && !reported_)
    status = outcome(std::move(status), kLastWordsMs);
  tree_.fail(status);
  if (!rendezvous_.connected() || reported_) return status;
  (void)rendezvous_.send_failure(status).ok();
  if (status.code() == Code::aborted || (late && !answered_)) return status;
  return outcome(std::move(status), kOutcomeMs);
}

// Waits for the rendezvous to report the first failure that it knows, so that all ranks report the same. Returns `own`
// if it does not.
Status Joining::outcome(Status own, std::int64_t within_ms) {
  answered_ = false;
  const Deadline deadline = Deadline::after_ms(within_ms);
  while (!deadline.passed() && !answered_) {
    pollfd polled = {rendezvous_.descriptor(), rendezvous_.events(), 0};
    if (::poll(&polled, 1, static_cast<int>(deadline.left_ms())) <= 0) continue;
    Status received = poll_rendezvous();
    if (reported_) return received;
  }
  return own;
}

// At the deadline, the rendezvous reports the missing ranks. It does not if its process is stopped or it has a later
// deadline.
Status Joining::explain_silence(Status late) {
  (void)rendezvous_.send(Message::ping).ok();
  late = outcome(std::move(late), kAnswerMs);
  if (reported_ || answered_) return late;
  return timeout_error(describe_rendezvous() + " does not answer: stopped, overloaded or out of reach; " +
                       late.message());
}

std::string Joining::describe_rendezvous() const {
  const std::string process = host_.process.pid == 0 ? "the process that made the unique id" : describe(host_.process);
  const std::string who =
      host_.rank == kRendezvous ? process : "rank " + std::to_string(host_.rank) + " (" + process + ")";
  return who + ", which runs the rendezvous at " + describe(id_.address) + ",";
}

Status Joining::take_steps() {
  credentials_.key = TUTTI_TRY(communicator_key(id_, options_.secret_file));
  credentials_.communicator = id_.communicator;
  own_.peer = TUTTI_TRY(own_record());
  if (options_.one_host_per_rank) own_.peer = as_own_host(own_.peer, rank_);
  own_.peer.location = options_.location;
  own_.one_host_per_rank = options_.one_host_per_rank ? 1 : 0;
  own_.protection = options_.protection;
  own_.timeout_ms = options_.timeout_ms;
  TUTTI_CHECK_OK(join_rendezvous());
  TUTTI_CHECK_OK(join_tree());
  TUTTI_CHECK_OK(join_mesh());
  TUTTI_CHECK_OK(join_peer_sockets());
  return finish();
}

SocketAddress Joining::mesh_endpoint(Rank rank) const {
  return {{}, hidden_name(credentials_.key, "mesh", rank), SOCK_SEQPACKET};
}

// The scope id of a link-local address depends on the host; the interface name yields that of this host.
Result<Address> Joining::rendezvous_address() const {
  if (!is_link_local(id_.address) || options_.socket_ifname.empty()) return id_.address;
  const Address own = TUTTI_TRY(own_address(options_.socket_ifname, id_.address.family));
  return seen_from(interface_of(own), id_.address);
}

Status Joining::join_rendezvous() {
  const Address address = TUTTI_TRY(rendezvous_address());
  Result<Socket> socket = connect_to({address, "", SOCK_STREAM});
  if (!socket.ok()) return std::move(socket).status();
  own_.tree = TUTTI_TRY(local_address(socket.value()));  // On the interface that reaches the other ranks.
  own_.tree.port = 0;
  Socket listener = TUTTI_TRY(listen_at({own_.tree, "", SOCK_STREAM}));
  own_.tree = TUTTI_TRY(local_address(listener));
  acceptor_.listen(std::move(listener), Role::tree, credentials_);
  TUTTI_CHECK_OK(start_handshake(std::move(socket).value(), {Role::join, rank_, ranks_, kRendezvous}, {}));
  Status met = serve_until([this] { return rendezvous_.connected(); });
  if (met.code() == Code::system || met.code() == Code::remote) return explain_no_rendezvous(std::move(met));
  if (!met.ok()) return met;
  phase_ = "the other ranks";
  return serve_until([this] { return parent_.has_value(); });
}

// A closed port refuses connections. Other errors mean that the network between the hosts fails.
Status Joining::explain_no_rendezvous(Status met) const {
  const bool between = met.code() == Code::system && met.os_error() != ECONNREFUSED;
  const std::string used =
      "the id was used before, or its process failed to join or has ended; see the log of that process";
  const std::string blocked =
      "the connection failed: allow TCP between the hosts on all ports, not only on that of the launcher, or set "
      "TUTTI_SOCKET_IFNAME to the interface between the hosts";
  return std::move(met).during("looking for the rendezvous at " + describe(id_.address) + ": " +
                               (between ? blocked : used));
}

// Mesh connections start after the tree is complete. By then the rank is known to be unique.
Status Joining::join_tree() {
  Socket listener = TUTTI_TRY(listen_at(mesh_endpoint(rank_)));
  acceptor_.listen(std::move(listener), Role::mesh, credentials_);
  if (rank_ != 0) {
    phase_ = "rank " + std::to_string(Tree::parent_of(rank_)) + " (" + describe(parent_->peer) + ")";
    TUTTI_CHECK_OK(connect_to_parent());
  }
  TUTTI_CHECK_OK(serve_until([this] { return tree_.complete(); }));
  tree_.watch_descriptor(rendezvous_.descriptor(), [this] { return poll_rendezvous(); });
  records_[rank_] = own_.peer;
  TUTTI_CHECK_OK(tree_.all_gather(std::as_writable_bytes(std::span(records_)), sizeof(PeerRecord), watch_));
  for (PeerRecord& record : records_) record.location = validated(record.location);
  return {};
}

Status Joining::connect_to_parent() {
  const Claim claim = {Role::tree, rank_, ranks_, Tree::parent_of(rank_)};
  if (parent_->peer.host == own_.peer.host) return connect_to_rank({parent_->tree, "", SOCK_STREAM}, claim, "");
  listener_ = record_of(own_.tree);
  return connect_to_host(claim, parent_->peer, {parent_->tree, {}});
}

Status Joining::join_mesh() {
  std::size_t wanted = 0;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_ || !on_same_host(peer)) continue;
    ++wanted;
    if (peer < rank_)
      TUTTI_CHECK_OK(connect_to_rank(mesh_endpoint(peer), {Role::mesh, rank_, ranks_, peer}, users(peer)));
  }
  phase_ = "the ranks of this host";
  return serve_until([this, wanted] {
    return static_cast<std::size_t>(
               std::count_if(sockets_.begin(), sockets_.end(), [](const Socket& s) { return bool(s); })) == wanted;
  });
}

// Ranks of one host drop connections from another user. Returns the purpose of a call, if the peer will do so.
std::string Joining::users(Rank peer) const {
  const std::uint32_t own = own_.peer.uid, other = records_[peer].uid;
  if (own == other) return "";
  return "rank " + std::to_string(rank_) + " (user id " + std::to_string(own) + ") called rank " +
         std::to_string(peer) + " (user id " + std::to_string(other) +
         "): ranks of one host must belong to one user, unless TUTTI_TRANSPORT=tcp is set on all ranks";
}

Status Joining::finish() {
  TUTTI_CHECK_OK(rendezvous_.send(Message::reached));
  phase_ = "the other ranks to reach each other";
  return serve_until([this] { return complete_; });
}

Status Joining::connect_to_rank(const SocketAddress& endpoint, const Claim& claim, std::string purpose) {
  Result<Socket> socket = connect_to(endpoint);
  if (!socket.ok()) return std::move(socket).status().during("connecting to rank " + std::to_string(claim.server));
  Connecting connecting;
  connecting.purpose = std::move(purpose);
  return start_handshake(std::move(socket).value(), claim, std::move(connecting));
}

Status Joining::start_handshake(Socket socket, const Claim& claim, Connecting connecting) {
  Handshake handshake = TUTTI_TRY(Handshake::connect(std::move(socket), claim, credentials_, own_));
  acceptor_.connect(std::move(handshake), std::move(connecting));
  return {};
}

Status Joining::serve_until(const std::function<bool()>& met) {
  while (!met()) {
    if (watch_.aborted())
      return aborted_error("rank " + std::to_string(rank_) + " aborted while it waited for " + phase_);
    if (watch_.deadline.passed()) {
      return timeout_error("rank " + std::to_string(rank_) + " waited " + describe_ms(options_.timeout_ms) + " for " +
                           phase_);
    }
    TUTTI_CHECK_OK(serve());
  }
  return {};
}

Status Joining::serve() {
  std::vector<pollfd> polled;
  if (rendezvous_.connected()) polled.push_back({rendezvous_.descriptor(), rendezvous_.events(), 0});
  acceptor_.watch(polled);
  Watch next = watch_;
  next.deadline.at_ns = std::min(next.deadline.at_ns, acceptor_.deadline().at_ns);
  if (::poll(polled.data(), polled.size(), next.poll_ms()) < 0) {
    if (errno == EINTR) return {};
    return system_error("poll while joining");
  }
  if (rendezvous_.connected() && polled[0].revents != 0) TUTTI_CHECK_OK(poll_rendezvous());
  TUTTI_CHECK_OK(acceptor_.serve(polled));
  for (AcceptedPeer& accepted : acceptor_.take()) TUTTI_CHECK_OK(accept(std::move(accepted)));
  return {};
}

Status Joining::accept(AcceptedPeer accepted) {
  const Claim claim = accepted.claim;
  const Rank other = accepted.opened_by_us ? claim.server : claim.rank;
  if (claim.role == Role::join) {
    rendezvous_ = ControlChannel(std::move(accepted));
    return {};
  }
  if (claim.ranks != ranks_ || other >= ranks_)
    return remote_error("unexpected connection from rank " + std::to_string(other));
  if (claim.role == Role::tree) {
    watch_connection(accepted.socket, kUnreceivedMs);
    return tree_.connect(other, ControlChannel(std::move(accepted)));
  }
  if (claim.role == Role::peer) return accept_peer_socket(other, std::move(accepted));
  if (sockets_[other]) return remote_error("rank " + std::to_string(other) + " called twice");
  sockets_[other] = std::move(accepted.socket);
  return {};
}

Status Joining::poll_rendezvous() {
  (void)rendezvous_.flush().ok();  // Ignore write errors: messages sent before the disconnect can still be read.
  Result<std::optional<ReceivedMessage>> received = rendezvous_.receive(kFailureBytes);
  if (!received.ok()) {
    reported_ = true;
    return remote_error(describe_rendezvous() + " ended or went out of reach while ranks joined");
  }
  if (!received.value()) return {};
  const ReceivedMessage& message = *received.value();
  if (message.kind == Message::ping) return rendezvous_.send(Message::pong);
  if (message.kind == Message::pong) {
    answered_ = true;
    return {};
  }
  if (message.kind == Message::host && message.payload.size() == sizeof host_) {
    std::memcpy(&host_, message.payload.data(), sizeof host_);
    host_.process.hostname[sizeof host_.process.hostname - 1] = '\0';
    return {};
  }
  if (message.kind == Message::go && message.payload.size() == sizeof(GoRecord)) {
    GoRecord go;
    std::memcpy(&go, message.payload.data(), sizeof go);
    parent_ = go.parent;
    parent_->peer.hostname[sizeof parent_->peer.hostname - 1] = '\0';
    connect_deadline_ = Deadline::after_ms(go.left_ms - std::min(go.left_ms / 4, kEarlierMs));
    return {};
  }
  reported_ = message.kind != Message::complete;
  if (reported_) return failure_in(message);
  complete_ = true;
  return {};
}

}  // namespace tutti
