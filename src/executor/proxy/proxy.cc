#include "src/executor/proxy/proxy.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/executor/proxy/near_nic.h"
#include "src/executor/proxy/sleeps.h"
#include "transports/tcp/interface.h"

namespace tutti {
namespace {

// Sleeps double, from kFirstSleepNs to the maximum that applies. An idle thread sleeps for the maximum at once.
constexpr std::int64_t kFirstSleepNs = 10'000;
constexpr std::int64_t kLookNs = 5'000'000;    // Between two checks of the peers without progress,
constexpr std::int64_t kMoveNs = 100'000'000;  // and with progress, which may be another communicator's.

}  // namespace

Result<std::unique_ptr<Proxy>> Proxy::start(ProxyDuty duty) {
  std::unique_ptr<Proxy> made(new Proxy(std::move(duty)));
  made->event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->event_) return system_error("make an event for a thread that carries lanes to other hosts");
  made->polled_.resize(1 + made->all_.size() * TcpConnection::kPolled);
  made->thread_ = TUTTI_TRY(LibraryThread::start([proxy = made.get()] { proxy->work(); }));
  return made;
}

Proxy::~Proxy() {
  ends_ = true;
  wake();
}

void Proxy::expect(std::uint32_t number) {
  expected_ = number;
  wake();
}

std::shared_ptr<void> Proxy::expect_graph() {
  std::shared_ptr<void> graph = graphs_;
  wake();
  return graph;
}

void Proxy::stop_polling() {
  const std::lock_guard lock(looking_);
  duty_.look = nullptr;
  lost_ = true;
}

// Announces calls and notifications. The thread sets sleeps_ and then checks reported_ once more before it sleeps, so
// no notification is lost.
void Proxy::wake() {
  ++reported_;
  if (!sleeps_) return;
  const std::uint64_t once = 1;
  (void)!::write(event_.get(), &once, sizeof once);
}

// Binds the thread near the common interface of all connections. No effect if they use interfaces near different CPUs.
void Proxy::move_near_nic() const {
  std::optional<int> common;
  for (const TcpConnection* connection : duty_.connections) {
    const std::optional<int> node = node_of(interface_name(connection->socket()));
    if (!node || (common && *common != *node)) return;
    common = node;
  }
  if (common) run_on(cpus_of(*common));
}

// Reads `ended` before it moves messages, so that everything that a completed call has posted is sent. For the same
// reason advance_all() waits for concurrent users of a connection, which may have polled the lane before the message
// was posted.
void Proxy::work() {
  move_near_nic();
  moved_ns_ = looked_ns_ = now_ns();
  for (;;) {
    const std::uint64_t reported = reported_;  // First: the destructor sets ends_, then counts a report.
    if (ends_) break;
    const bool in_call = expects_calls();
    rounds_.fetch_add(1, std::memory_order_relaxed);
    const bool moved = advance_connections();
    const std::int64_t now = now_ns();
    if (moved) {
      moved_ns_ = now;
      sleep_ns_ = kFirstSleepNs;
    }
    check_peers();
    if (moved) continue;
    const std::int64_t longest_ns = longest_sleep_ns(
        {.in_call = in_call, .graphs = graphs_exist(), .failed = failed_, .lost = lost_, .still_ns = now - moved_ns_});
    if (longest_ns == 0) {
      ::sched_yield();
      continue;
    }
    sleeps_ = true;
    if (reported == reported_) sleep(longest_ns);
    sleeps_ = false;
    if (reported != reported_) {  // A call enqueued now begins soon.
      moved_ns_ = now_ns();
      sleep_ns_ = kFirstSleepNs;
    }
  }
}

bool Proxy::advance_connections() {
  bool moved = false;
  for (TcpConnection* connection : duty_.connections) moved = connection->advance_all() || moved;
  return moved;
}

bool Proxy::expects_calls() const { return !failed_ && load_acquire(duty_.ended) != expected_; }

std::uint64_t Proxy::notes() const {
  std::uint64_t sum = 0;
  for (const TcpConnection* connection : all_) sum += connection->notes_so_far();
  return sum;
}

void Proxy::check_peers() {
  if (failed_) return;
  const std::int64_t now = now_ns();
  const bool still = now - std::max(moved_ns_, looked_ns_) >= kLookNs;
  const bool stuck = (expects_calls() && still) ||
                     ((expects_calls() || graphs_exist() || duty_.connections.empty()) && now - looked_ns_ >= kMoveNs);
  const bool ended_badly = load_acquire(duty_.failed) != 0;
  const std::uint64_t notes = this->notes();
  if (std::exchange(notes_, notes) == notes && !stuck && !ended_badly) return;
  looked_ns_ = now;
  const std::lock_guard lock(looking_);
  failed_ = duty_.look != nullptr && !duty_.look(now - moved_ns_);
}

// Sleeps until an event, for increasing times up to `longest_ns`.
void Proxy::sleep(std::int64_t longest_ns) {
  sleep_ns_ = longest_ns == kMaxIdleSleepNs ? kMaxIdleSleepNs : std::clamp(2 * sleep_ns_, kFirstSleepNs, longest_ns);
  polled_[0] = {event_.get(), POLLIN, 0};
  std::span rest = std::span(polled_).subspan(1);
  for (TcpConnection* connection : all_) {
    if (!connection->prepare_wait(rest.first<TcpConnection::kPolled>())) return;
    rest = rest.subspan(TcpConnection::kPolled);
  }
  const timespec duration = {sleep_ns_ / 1'000'000'000, sleep_ns_ % 1'000'000'000};
  ::ppoll(polled_.data(), polled_.size(), &duration, nullptr);
  // Connections without lanes are advanced when the thread wakes, and not in each round.
  for (TcpConnection* connection : duty_.watched) connection->advance();
  std::uint64_t count = 0;
  if ((polled_[0].revents & POLLIN) != 0) (void)!::read(event_.get(), &count, sizeof count);
}

}  // namespace tutti
