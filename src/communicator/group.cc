#include "src/communicator/group.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include "src/base/caught.h"
#include "src/communicator/call/pace.h"

namespace tutti {
namespace {

// The remaining calls of one communicator, in the order in which they were made.
struct Lineup {
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
using Lineups = std::map<Communicator*, Lineup>;

// Ends all calls of one communicator. A single invalid call is the caller's error and does not affect peers. Other
// calls that end with it do, and so does an allocation failure outside of the communicator, which has not been reported
// to peers.
void give_up(Communicator& communicator, Lineup& lineup, const Status& reason) {
  if (lineup.holds_several() || !is_rejected_call(reason)) call_off(communicator, reason);
  lineup.waiting.clear();  // clear() allocates no memory; an assignment would.
  lineup.running.clear();
  lineup.failed = true;
}

// Advances all communicators once. Returns the first failure. `any`: a call has finished, or a communicator has failed.
Status advance_lineups(Lineups& lineups, bool& any) {
  Status first;
  for (auto& [communicator, lineup] : lineups) {
    auto advanced = caught([&lineup = lineup] { return lineup.advance(); });
    any = any || !advanced.ok() || advanced.value();
    if (advanced.ok()) continue;
    Status status = std::move(advanced).status();
    give_up(*communicator, lineup, status);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status wait_for_lineups(Lineups& lineups) {
  Status first;
  const auto driven =
      std::count_if(lineups.begin(), lineups.end(), [](const auto& entry) { return !entry.second.done(); });
  thread_pace.communicators = static_cast<std::uint32_t>(driven);
  for (auto& [communicator, lineup] : lineups) {
    if (lineup.done()) continue;
    Status status = caught([&lineup = lineup] { return lineup.running.front()->wait(); });
    if (status.ok()) continue;
    give_up(*communicator, lineup, status);
    if (first.ok()) first = std::move(status);
  }
  thread_pace.communicators = 1;
  return first;
}

// Runs all calls. Starting a call does not wait either, so one thread can drive ranks that wait for each other. A
// failing communicator does not stop the others, since their peers wait for them.
Status run_lineups(Lineups& lineups) {
  const auto is_done = [](const auto& entry) { return entry.second.done(); };
  Status first;
  while (!std::all_of(lineups.begin(), lineups.end(), is_done)) {
    bool any = false;
    Status status = advance_lineups(lineups, any);
    if (!any) status = wait_for_lineups(lineups);
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
  Lineups lineups;
  Status lined_up = caught([&]() -> Status {
    for (const GroupedCall& call : calls) lineups[call.communicator].waiting.push_back(&call);
    return {};
  });
  if (!lined_up.ok()) {
    for (const GroupedCall& call : calls) call_off(*call.communicator, lined_up);
    return lined_up;
  }
  Status first = run_lineups(lineups);
  for (auto& [communicator, lineup] : lineups) {
    if (lineup.failed) communicator->wait_for_remote_access();
  }
  return first;
}

}  // namespace tutti
