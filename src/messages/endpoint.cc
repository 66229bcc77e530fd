#include "src/messages/endpoint.h"

#include <sys/epoll.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/base/caught.h"
#include "src/messages/errors.h"
#include "src/messages/service.h"

namespace tutti {
namespace {

constexpr std::int64_t kFinishMs = 3000;
constexpr std::uint32_t kIdleChecks = 10;    // Checks without incomplete requests until the checks end.
constexpr std::int64_t kReportMs = 1;        // Interval of attempts to send the report of the address,
constexpr std::int64_t kMaxReportMs = 1000;  // and time until they end.

}  // namespace

MessageEndpoint::Locked::~Locked() {
  std::vector<EndedRequest> ended = endpoint_.protocol_.take_ended();
  lock_.unlock();
  std::vector<RequestPointer> callbacks;
  for (EndedRequest& each : ended) {
    if (each.request->end(std::move(each.status), each.info)) callbacks.push_back(std::move(each.request));
  }
  if (callbacks.empty()) return;
  lock_.lock();
  const bool served = endpoint_.closed_.ok();  // Else the service may not exist.
  if (served) {
    endpoint_.callbacks_.insert(endpoint_.callbacks_.end(), callbacks.begin(), callbacks.end());
    endpoint_.service_.wake();
  }
  lock_.unlock();
  if (served) return;
  for (const RequestPointer& request : callbacks) request->run_callback();
}

Result<std::shared_ptr<MessageEndpoint>> MessageEndpoint::create(MessageMembership membership,
                                                                 std::vector<Socket> listeners,
                                                                 MessageService& service) {
  MessageSockets sockets = {adopt_socket(::epoll_create1(EPOLL_CLOEXEC)), std::move(listeners)};
  if (!sockets.epoll) return system_error("create an epoll instance for tagged messages");
  return std::make_shared<MessageEndpoint>(std::move(membership), std::move(sockets), service);
}

MessageEndpoint::MessageEndpoint(MessageMembership membership, MessageSockets sockets, MessageService& service)
    : membership_(std::move(membership)),
      service_(service),
      links_(membership_, std::move(sockets), service, protocol_),
      protocol_(membership_, links_) {
  if (!membership_.report_address) return;
  report_at_ = Deadline{0};
  reported_until_ = Deadline::after_ms(kMaxReportMs);
}

// ---- Requests ----

Status MessageEndpoint::check_open() const {
  if (!closed_.ok()) return closed_.copy();
  return leaving_ ? message_after_end(membership_.name) : Status();
}

// Checks of the communicator begin with the first incomplete request or unsuccessful probe.
void MessageEndpoint::begin_checks() {
  if (check_at_.at_ns != Deadline{}.at_ns) return;
  check_at_ = Deadline::after_ms(kMessageCheckMs);
  service_.wake();
}

Result<RequestPointer> MessageEndpoint::send(const MessageCall& call) {
  const Locked lock(*this);
  TUTTI_CHECK_OK(check_open());
  begin_checks();
  return protocol_.send(call);
}

Result<RequestPointer> MessageEndpoint::receive(const MessageCall& call) {
  const Locked lock(*this);
  TUTTI_CHECK_OK(check_open());
  begin_checks();
  return protocol_.receive(call);
}

Result<std::optional<MessageInfo>> MessageEndpoint::probe(Rank source, std::uint64_t tag) {
  const Locked lock(*this);
  TUTTI_CHECK_OK(check_open());
  auto found = TUTTI_TRY(protocol_.probe(source, tag));
  if (found) return found;
  probed_ = true;
  probed_from_any_ = probed_from_any_ || source == kAnyRank;
  begin_checks();
  return found;
}

bool MessageEndpoint::cancel(const MessageRequest& request) {
  const Locked lock(*this);
  return protocol_.cancel(request) || request.complete();
}

// ---- Ends ----

void MessageEndpoint::end_all(const Status& reason) {
  if (!closed_.ok()) return;
  closed_ = reason.copy();
  protocol_.end_all(reason);
  links_.close();
}

void MessageEndpoint::finish() {
  {
    const Locked lock(*this);
    leaving_ = true;
    protocol_.leave();
    links_.leave();
  }
  const Deadline deadline = Deadline::after_ms(kFinishMs);
  while (!deadline.passed() && !drained()) ::poll(nullptr, 0, 1);
}

bool MessageEndpoint::drained() {
  const Locked lock(*this);
  return links_.drained();
}

void MessageEndpoint::close() {
  service_.remove(*this);
  {
    const Locked lock(*this);
    end_all(aborted_error("the communicator" + membership_.name + " has ended"));
  }
  run_callbacks();
}

// ---- Checks of the communicator ----

// Checks go on for a while after the last request or probe, so that few of them wake the thread.
bool MessageEndpoint::check_is_due() {
  const bool alarm = links_.take_alarm();
  if (!alarm && !check_at_.passed()) return false;
  const bool probed = std::exchange(probed_, false);
  const bool idle = protocol_.incomplete() == 0 && !probed && trouble_.ok() && !links_.any_broken();
  idle_checks_ = idle ? idle_checks_ + 1 : 0;
  const bool ends = idle_checks_ > kIdleChecks || !closed_.ok();
  check_at_ = ends ? Deadline() : Deadline::after_ms(kMessageCheckMs);
  return !idle && closed_.ok();
}

// Returns the ranks whose departure would end requests or probes.
std::vector<Rank> MessageEndpoint::watched_ranks() const {
  if (!probed_from_any_ && !protocol_.receives_from_any()) return links_.peers();
  std::vector<Rank> all(membership_.ranks);
  std::iota(all.begin(), all.end(), Rank{0});
  return all;
}

// Returns why the communicator must fail; ok if it need not.
Status MessageEndpoint::take_reason() {
  if (!trouble_.ok()) return std::exchange(trouble_, Status());
  return links_.overdue();
}

// Asks about other ranks without the lock, since the answer may take a while.
void MessageEndpoint::check_communicator() {
  std::vector<Rank> left;
  {
    const Locked lock(*this);
    if (!check_is_due()) return;
    left = watched_ranks();
  }
  Status status = membership_.failure();
  if (status.ok()) {
    std::erase_if(left, [&](Rank rank) { return rank == membership_.rank || !membership_.has_left(rank); });
    {
      const Locked lock(*this);
      for (const Rank rank : left) links_.note_departure(rank);
      protocol_.end_receives_from_any();
      status = take_reason();
    }
    if (!status.ok()) status = membership_.fail(std::move(status));
  }
  if (status.ok()) return;
  const Locked lock(*this);
  end_all(status);
}

// ---- Service thread ----

void MessageEndpoint::watch(std::vector<pollfd>& polled) {
  const Locked lock(*this);
  links_.watch(polled);
}

Deadline MessageEndpoint::deadline() {
  const Locked lock(*this);
  return Deadline{std::min({links_.deadline().at_ns, check_at_.at_ns, report_at_.at_ns})};
}

Status MessageEndpoint::serve_links(const std::vector<pollfd>& polled) {
  const Locked lock(*this);
  return caught([&] { return links_.serve(polled); });
}

// Does not hold the lock while it asks for addresses, which may take a while.
Status MessageEndpoint::open_links() {
  if (report_at_.passed())
    report_at_ = membership_.report_address() || reported_until_.passed() ? Deadline() : Deadline::after_ms(kReportMs);
  std::vector<Rank> due;
  {
    const Locked lock(*this);
    due = links_.due();
  }
  for (const Rank rank : due) {
    auto address = membership_.address(rank);
    const Locked lock(*this);
    links_.call(rank, std::move(address));
  }
  return {};
}

void MessageEndpoint::serve(const std::vector<pollfd>& polled) {
  Status status = serve_links(polled);
  if (status.ok()) status = caught([&] { return open_links(); });
  if (!status.ok()) {
    const Locked lock(*this);
    if (trouble_.ok()) trouble_ = std::move(status).during("exchanging tagged messages" + membership_.name);
    check_at_ = Deadline::after_ms(1);
  }
  run_callbacks();
  check_communicator();
  run_callbacks();
}

void MessageEndpoint::run_callbacks() {
  std::vector<RequestPointer> callbacks;
  {
    const Locked lock(*this);
    callbacks.swap(callbacks_);
  }
  for (const RequestPointer& request : callbacks) request->run_callback();
}

}  // namespace tutti
