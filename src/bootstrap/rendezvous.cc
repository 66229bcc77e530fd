#include "src/bootstrap/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "src/base/duration.h"
#include "src/base/log.h"
#include "src/bootstrap/tree.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxListed = 16;
constexpr std::int64_t kAnswerMs = 250;
// Time of the liveness check before the deadline; at most a quarter of the time limit.
constexpr std::int64_t kLivenessCheckMs = 1000;

std::string described(Rank rank, const PeerRecord& peer) {
  return "rank " + std::to_string(rank) + " (" + describe(peer) + ")";
}

}  // namespace

Rendezvous::Rendezvous(const UniqueId& id, std::int64_t report_after_ms) : id_(id), report_after_ms_(report_after_ms) {
  if (Result<PeerRecord> own = own_record(); own.ok()) host_.process = own.value();
}

void Rendezvous::listen(Socket listener, Role role, const Credentials& credentials) {
  acceptor_.listen(std::move(listener), role, credentials);
}

void Rendezvous::run(int stop) {
  std::vector<pollfd> polled;
  while (!finished_) {
    polled.assign(1, {stop, POLLIN, 0});
    watched_.clear();
    for (const auto& [rank, member] : members_) {
      polled.push_back({member.channel.descriptor(), member.channel.events(), 0});
      watched_.push_back(rank);
    }
    acceptor_.watch(polled);
    ::poll(polled.data(), polled.size(), static_cast<int>(next_event().left_ms()));
    if (polled[0].revents != 0) return;
    serve(polled);
    check_deadlines();
  }
}

Deadline Rendezvous::next_event() const {
  return {std::min({deadline_.at_ns, report_.at_ns, liveness_check_.at_ns, acceptor_.deadline().at_ns})};
}

void Rendezvous::serve(const std::vector<pollfd>& polled) {
  if (Status status = acceptor_.serve(polled); !status.ok())
    handle_error(std::move(status).during("the process that made the unique id was their rendezvous"));
  for (AcceptedPeer& accepted : acceptor_.take()) admit(std::move(accepted));
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    if (polled[i + 1].revents == 0) continue;
    const auto member = members_.find(watched_[i]);
    if (member != members_.end()) receive(member->first, member->second);
  }
}

void Rendezvous::admit(AcceptedPeer accepted) {
  if (accepted.claim.role == Role::join) return join(std::move(accepted));
  if (accepted.claim.rank == 0) return notice_duplicate(accepted.record.peer);
  if (failure_) return;  // The id is useless now. The caller asks again and may reach the next attempt.
  ControlChannel channel(std::move(accepted));
  (void)channel.send(Message::id, bytes_of(id_)).ok();  // A caller that has disconnected is reported as missing.
}

// Only rank 0 starts a rendezvous, so a caller with rank 0 is a duplicate. It calls to find out why it cannot listen
// here, and then fails by itself. Reports of missing ranks mention it.
void Rendezvous::notice_duplicate(const PeerRecord& duplicate) {
  duplicate_ = "; rank 0 was started twice: " + describe(duplicate) + " has rank 0, too" + two_jobs_;
  log(LogLevel::warn, "%s", duplicate_.c_str() + 2);
}

void Rendezvous::join(AcceptedPeer accepted) {
  const Claim claim = accepted.claim;
  const JoinRecord record = accepted.record;
  ControlChannel channel(std::move(accepted));
  if (failure_) {
    (void)channel.send_failure({failure_->first, failure_->second}).ok();
    return;
  }
  if (members_.empty()) {
    ranks_ = claim.ranks;
    timeout_ms_ = record.timeout_ms;
    deadline_ = Deadline::after_ms(timeout_ms_);
    report_ = Deadline::after_ms(report_after_ms_);
  }
  if (Status refusal = refuse(claim, record); !refusal.ok()) {
    acceptor_.stop_listening(Role::invitation);
    const bool ends_process = in_this_process(record);  // See send_to_members().
    if (!ends_process) (void)channel.send_failure(refusal).ok();
    fail(refusal);
    if (ends_process) (void)channel.send_failure(refusal).ok();
    return;
  }
  members_.emplace(claim.rank, Member{std::move(channel), record});
  log(LogLevel::trace, "rank %u of %u connected: %s", claim.rank, ranks_, describe(record.peer).c_str());
  send_host(claim.rank);
  if (members_.size() == ranks_) start();
}

// Sends the identity of this process, which ranks report if it is stopped.
void Rendezvous::send_host(Rank newcomer) {
  const bool is_new = host_.rank == kRendezvous && in_this_process(members_.at(newcomer).record);
  if (is_new) host_.rank = newcomer;
  for (auto& [rank, member] : members_) {
    if (is_new || rank == newcomer) (void)member.channel.send(Message::host, bytes_of(host_)).ok();
  }
}

bool Rendezvous::in_this_process(const JoinRecord& record) const {
  return record.peer.process == host_.process.process;
}

// Ranks of this process come last: one that receives the message may end the process at once.
void Rendezvous::send_to_members(const std::function<void(ControlChannel&)>& send) {
  for (const bool local : {false, true}) {
    for (auto& [rank, member] : members_) {
      if (in_this_process(member.record) == local) send(member.channel);
    }
  }
}

Status Rendezvous::refuse(const Claim& claim, const JoinRecord& record) const {
  const std::string who = described(claim.rank, record.peer);
  if (!members_.empty()) {
    const auto& [rank, first] = *members_.begin();
    const std::string other = described(rank, first.record.peer);
    if (claim.ranks != ranks_) {
      return invalid_usage("world sizes differ: " + who + " was started with " + std::to_string(claim.ranks) +
                           " ranks, and " + other + " with " + std::to_string(ranks_) +
                           "; all ranks of a job must have the same number");
    }
    if (record.one_host_per_rank != first.record.one_host_per_rank) {
      return invalid_usage((record.one_host_per_rank != 0 ? who : other) +
                           " selects a network transport (TUTTI_TRANSPORT or options.tuning->transport), but " +
                           (record.one_host_per_rank != 0 ? other : who) +
                           " does not; the transport must match on all ranks");
    }
    if (record.protection != first.record.protection) {
      return invalid_usage(who + " and " + other + " protect what they send over TCP differently: TUTTI_ENCRYPT and " +
                           "TUTTI_CHECK must be the same on all ranks");
    }
  }
  if (claim.ranks > kMaxRanks || claim.rank >= claim.ranks) {
    return invalid_usage(who + " is out of range for " + std::to_string(claim.ranks) + " ranks");
  }
  const auto earlier = members_.find(claim.rank);
  if (earlier == members_.end()) return {};
  const PeerRecord& first = earlier->second.record.peer;
  if (first.process == record.peer.process)
    return invalid_usage("rank " + std::to_string(claim.rank) + " joined twice from one process, " + describe(first) +
                         ": pass a rank of its own to each thread");
  return invalid_usage("rank " + std::to_string(claim.rank) + " was started twice: " + describe(first) + " and " +
                       describe(record.peer) + " have the same rank" + two_jobs_);
}

void Rendezvous::start() {
  started_ = true;
  GoRecord go;
  if (timeout_ms_ > 0) {
    go.left_ms = std::max<std::int64_t>(deadline_.left_ms(), 1);
    liveness_check_.at_ns = deadline_.at_ns - std::min(timeout_ms_ / 4, kLivenessCheckMs) * 1'000'000;
  }
  for (auto& [rank, member] : members_) {
    go.parent = members_.at(rank == 0 ? 0 : Tree::parent_of(rank)).record;
    (void)member.channel.send(Message::go, bytes_of(go)).ok();
  }
}

// If this process was stopped for a while, the deadline may have passed, too. Ranks still get time to answer.
void Rendezvous::check_liveness() {
  liveness_check_ = {};
  deadline_.at_ns = std::max(deadline_.at_ns, Deadline::after_ms(kAnswerMs).at_ns);
  for (auto& [rank, member] : members_) {
    if (!member.reached) (void)member.channel.send(Message::ping).ok();
  }
}

void Rendezvous::receive(Rank rank, Member& member) {
  (void)member.channel.flush().ok();
  Result<std::optional<ReceivedMessage>> received = member.channel.receive(kFailureBytes);
  if (!received.ok()) {
    return fail(remote_error(described(rank, member.record.peer) + " died while joining"));
  }
  if (!received.value()) return;
  if (received.value()->kind == Message::ping) {
    (void)member.channel.send(Message::pong).ok();
    return;
  }
  if (received.value()->kind == Message::pong) {
    member.answered = true;
    return;
  }
  if (received.value()->kind != Message::reached || !started_ || member.reached)
    return fail(failure_in(*received.value()));
  member.reached = true;
  if (++reached_ < members_.size()) return;
  acceptor_.stop_listening();  // Stop before ranks can create another communicator at the same rendezvous address.
  send_to_members([](ControlChannel& channel) { (void)channel.send(Message::complete).ok(); });
  finished_ = true;
}

void Rendezvous::check_deadlines() {
  const std::string reason = rank_without_secret() + duplicate_;
  if (report_.passed()) {
    const char* advice = started_ ? "" : advice_.c_str();
    log(LogLevel::warn, "waiting for %s to %s, %s after the first rank%s", missing().c_str(),
        started_ ? "reach the others" : "join", describe_ms(report_after_ms_).c_str(),
        reason.empty() ? advice : reason.c_str());
    report_.at_ns += report_after_ms_ * 1'000'000;
    report_after_ms_ *= 2;
  }
  if (liveness_check_.passed()) check_liveness();
  if (!deadline_.passed()) return;
  if (!failure_ && !members_.empty()) fail(late());
  finished_ = true;
}

// Error at the deadline.
Status Rendezvous::late() const {
  const std::string limit = describe_ms(timeout_ms_);
  const std::string reason = rank_without_secret() + duplicate_;
  if (!started_)
    return {reason.empty() ? Code::timeout : Code::invalid_usage,
            missing() + " did not join within " + limit + (reason.empty() ? advice_ : reason)};
  const std::string silent = list([](const Member* member) { return !member->reached && !member->answered; });
  if (!silent.empty())
    return timeout_error(silent + " joined, but did not answer within " + limit +
                         ": stopped, overloaded or out of reach");
  return timeout_error(missing() + " joined, but did not reach the others within " + limit);
}

// Reports the failure and closes all connections; data already sent still arrives. Frees the rendezvous address first,
// because ranks may retry there.
void Rendezvous::fail(const Status& status) {
  if (failure_) return;
  acceptor_.stop_listening(Role::invitation);
  log(LogLevel::info, "joining failed: %s", status.message().c_str());
  failure_ = {status.code(), status.message()};
  send_to_members([&](ControlChannel& channel) { (void)channel.send_failure(status).ok(); });
  members_.clear();
  report_ = {};
}

// Handles a failure of this process to accept ranks. Without members to notify, it logs once and retries: the resource
// may become available, and callers wait meanwhile.
void Rendezvous::handle_error(const Status& status) {
  if (!members_.empty()) return fail(status);
  if (!std::exchange(warned_, true)) log(LogLevel::warn, "ranks cannot join: %s; retrying", status.message().c_str());
}

// Names a rank that disconnected after this end proved its secret. Its own error states the reason; here only the
// disconnect is visible.
std::string Rendezvous::rank_without_secret() const {
  const std::optional<Rank> rank = acceptor_.unproved();
  if (!rank || started_ || members_.contains(*rank)) return "";
  return "; rank " + std::to_string(*rank) +
         " connected and closed the connection: it ended, or does not have the same secret (TUTTI_SECRET_FILE differs, "
         "or "
         "is not set on all ranks)";
}

std::string Rendezvous::missing() const {
  return list([this](const Member* member) { return member == nullptr || (started_ && !member->reached); });
}

std::string Rendezvous::list(const std::function<bool(const Member*)>& listed) const {
  std::string text;
  std::size_t count = 0;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const auto member = members_.find(rank);
    if (!listed(member == members_.end() ? nullptr : &member->second)) continue;
    if (++count <= kMaxListed) text += (count == 1 ? "" : ", ") + std::to_string(rank);
  }
  if (count == 0) return "";
  if (count > kMaxListed) text += " and " + std::to_string(count - kMaxListed) + " more";
  return (count == 1 ? "rank " : "ranks ") + text + " of " + std::to_string(ranks_);
}

}  // namespace tutti
