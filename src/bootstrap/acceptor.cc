#include "src/bootstrap/acceptor.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "src/base/log.h"

namespace tutti {
namespace {

constexpr std::int64_t kHandshakeMs = 2000;
constexpr std::int64_t kIdleHandshakeMs = 500;  // Ranks complete a handshake much faster.
constexpr std::int64_t kRetryMs = 100;
constexpr std::size_t kMaxUnauthenticated = 512;
constexpr int kAcceptedAtOnce = 64;

// True if the other end of a unix socket belongs to the user of this process. TCP connections rely on the secret alone.
bool is_own_user(int descriptor) {
  int family = 0;
  socklen_t length = sizeof family;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0 || family != AF_UNIX) return true;
  ucred credentials = {};
  length = sizeof credentials;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 &&
         credentials.uid == ::geteuid();
}

std::string describe(const Claim& claim) {
  const bool rendezvous = claim.server == kRendezvous;
  return rendezvous ? "connecting to the rendezvous" : "connecting to rank " + std::to_string(claim.server);
}

}  // namespace

void Acceptor::listen(Socket listener, Role role, const Credentials& credentials) {
  listeners_.push_back({std::move(listener), role, credentials});
}

void Acceptor::connect(Handshake handshake, Connecting connecting) {
  if (connecting.purpose.empty()) connecting.purpose = describe(handshake.claim());
  pending_.push_back({std::move(handshake), connecting.deadline, std::move(connecting.purpose)});
}

void Acceptor::watch(std::vector<pollfd>& polled) {
  first_ = polled.size();
  watched_ = pending_.size();
  if (paused_ && paused_->passed()) paused_.reset();
  const short events = paused_ ? 0 : POLLIN;
  for (const Listener& listener : listeners_) polled.push_back({listener.socket.get(), events, 0});
  for (const Pending& pending : pending_)
    polled.push_back({pending.handshake.descriptor(), pending.handshake.events(), 0});
}

Status Acceptor::serve(const std::vector<pollfd>& polled) {
  const std::size_t handshakes = first_ + listeners_.size();
  std::deque<Pending> remaining;
  for (std::size_t i = 0; i < watched_; ++i) {
    if (polled[handshakes + i].revents != 0) {
      const bool goes_on = TUTTI_TRY(advance(pending_[i]));
      if (!goes_on) continue;
    }
    const bool kept = TUTTI_TRY(keep(pending_[i]));
    if (kept) remaining.push_back(std::move(pending_[i]));
  }
  if (remaining.size() < pending_.size()) paused_.reset();  // A closed connection may have freed a descriptor.
  pending_ = std::move(remaining);
  watched_ = 0;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (polled[first_ + i].revents != 0) TUTTI_CHECK_OK(accept(listeners_[i]));
  }
  return {};
}

Result<bool> Acceptor::keep(const Pending& pending) {
  if (!pending.deadline.passed()) return true;
  if (!pending.handshake.connects()) return false;
  return timeout_error("no answer").during(pending.purpose);
}

// Failures of outgoing calls are errors. Failures of incoming calls are only logged.
Result<bool> Acceptor::advance(Pending& pending) {
  Result<bool> done = pending.handshake.advance();
  if (!done.ok()) {
    Status status = std::move(done).status();
    if (pending.handshake.connects()) return std::move(status).during(pending.purpose);
    if (pending.handshake.awaits_proof()) unproved_ = pending.handshake.claim().rank;
    log(LogLevel::trace, "dropped a connection: %s", status.message().c_str());
    return false;
  }
  if (!done.value()) return true;
  if (!is_own_user(pending.handshake.descriptor()))
    return invalid_usage("a unix socket of the communicator belongs to another user");
  accepted_.push_back(std::move(pending.handshake).finish());
  return false;
}

Status Acceptor::accept(const Listener& listener) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    if (pending_.size() >= kMaxUnauthenticated + ranks_) drop_oldest();
    Result<std::optional<Socket>> accepted = accept_socket(listener.socket);
    if (!accepted.ok()) {
      const bool again = TUTTI_TRY(make_room(std::move(accepted).status()));
      if (again) continue;
      return {};
    }
    if (!accepted.value()) return {};
    if (!is_own_user(accepted.value()->get())) continue;
    Handshake handshake =
        TUTTI_TRY(Handshake::answer(std::move(*accepted.value()), listener.role, self_, listener.credentials));
    pending_.push_back({std::move(handshake), Deadline::after_ms(kHandshakeMs), ""});
  }
  return {};
}

// Frees a descriptor by dropping the oldest incoming call, which may be unauthenticated. Does not drop ranks: they
// would report a disconnect of this end instead of the shortage of descriptors.
Result<bool> Acceptor::make_room(Status shortage) {
  const auto oldest = oldest_caller();
  if (oldest == pending_.end()) {
    // The connection is still pending, so poll() would return at once, again and again.
    paused_ = Deadline::after_ms(kRetryMs);
    return std::move(shortage).during("accepting other ranks");
  }
  paused_ = Deadline{oldest->deadline.at_ns - (kHandshakeMs - kIdleHandshakeMs) * 1'000'000};
  if (!paused_->passed()) return false;
  log(LogLevel::warn, "dropped a connection that was silent: %s", shortage.message().c_str());
  return drop_oldest();
}

std::deque<Acceptor::Pending>::iterator Acceptor::oldest_caller() {
  return std::find_if(pending_.begin(), pending_.end(), [](const Pending& p) { return !p.handshake.connects(); });
}

// Drops the oldest incoming call. Ranks take microseconds, so the oldest is not a rank.
bool Acceptor::drop_oldest() {
  const auto oldest = oldest_caller();
  if (oldest == pending_.end()) return false;
  pending_.erase(oldest);
  return true;
}

Deadline Acceptor::deadline() const {
  Deadline first = paused_.value_or(Deadline{});
  for (const Pending& pending : pending_) first.at_ns = std::min(first.at_ns, pending.deadline.at_ns);
  return first;
}

}  // namespace tutti
