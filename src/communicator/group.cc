#include "src/communicator/group.h"

#include <algorithm>
#include <deque>
#include <map>

#include "src/base/caught.h"
#include "src/communicator/call/pace.h"

namespace tutti {
namespace {

// The remaining calls of one communicator, in the order in which they were made.
struct PendingCalls {
  std::deque<const GroupedCall*> waiting;
  std::vector<std::unique_ptr<Operation>> running;
  bool alone = false;  // The running operation is a collective.
  bool failed = false;

  bool done() const { return waiting.empty() && running.empty(); }
  bool holds_several() const { return waiting.size() + running.size() > 1; }

  // Starts messages at once, up to the next collective. Starts a collective when all calls before it are done.
  Status start() {
    while (!waiting.empty()) {
      const GroupedCall& next = *waiting.front();
      const bool message = next.call.kind == Kind::send || next.call.kind == Kind::recv;
      if (!running.empty() && (!message || alone)) return {};
      alone = !message;
      auto started = TUTTI_TRY(next.communicator->start(next.call, &next.options));
      running.push_back(std::move(started));
      waiting.pop_front();
    }
    return {};
  }
  // Returns whether any call is done.
  Result<bool> advance() {
    TUTTI_CHECK_OK(start());
    return advance_all(running);
  }
};
using PendingByCommunicator = std::map<Communicator*, PendingCalls>;

// Ends all calls of one communicator. A single invalid call is the caller's error and does not affect peers. Other
// calls that end with it do, and so does an allocation failure outside of the communicator, which has not been reported
// to peers.
void give_up(Communicator& communicator, PendingCalls& calls, const Status& reason) {
  if (calls.holds_several() || !is_rejected_call(reason)) call_off(communicator, reason);
  calls.waiting.clear();  // clear() allocates no memory; an assignment would.
  calls.running.clear();
  calls.failed = true;
}

// Advances all communicators once. Returns the first failure. `any`: a call has finished, or a communicator has failed.
Status advance_all_pending(PendingByCommunicator& pending, bool& any) {
  Status first;
  for (auto& [communicator, calls] : pending) {
    auto advanced = caught([&calls = calls] { return calls.advance(); });
    any = any || !advanced.ok() || advanced.value();
    if (advanced.ok()) continue;
    Status status = std::move(advanced).status();
    give_up(*communicator, calls, status);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status wait_for_pending(PendingByCommunicator& pending) {
  Status first;
  const auto driven =
      std::count_if(pending.begin(), pending.end(), [](const auto& entry) { return !entry.second.done(); });
  thread_pace.communicators = static_cast<std::uint32_t>(driven);
  for (auto& [communicator, calls] : pending) {
    if (calls.done()) continue;
    Status status = caught([&calls = calls] { return calls.running.front()->wait(); });
    if (status.ok()) continue;
    give_up(*communicator, calls, status);
    if (first.ok()) first = std::move(status);
  }
  thread_pace.communicators = 1;
  return first;
}

// Runs all calls. Starting a call does not wait either, so one thread can drive ranks that wait for each other. A
// failing communicator does not stop the others, since their peers wait for them.
Status run_pending(PendingByCommunicator& pending) {
  const auto is_done = [](const auto& entry) { return entry.second.done(); };
  Status first;
  while (!std::all_of(pending.begin(), pending.end(), is_done)) {
    bool any = false;
    Status status = advance_all_pending(pending, any);
    if (!any) status = wait_for_pending(pending);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace

void call_off(Communicator& communicator, const Status& reason) {
  // Peers are notified before this rank reports the error.
  (void)caught([&] { return communicator.call_off(reason); });
}

Status run_group(const std::vector<GroupedCall>& calls) {
  PendingByCommunicator pending;
  Status queued = caught([&]() -> Status {
    for (const GroupedCall& call : calls) pending[call.communicator].waiting.push_back(&call);
    return {};
  });
  if (!queued.ok()) {
    for (const GroupedCall& call : calls) call_off(*call.communicator, queued);
    return queued;
  }
  Status first = run_pending(pending);
  for (auto& [communicator, own] : pending) {
    if (own.failed) communicator->wait_for_remote_access();
  }
  return first;
}

}  // namespace tutti
