#include "src/communicator/group.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

namespace tutti {

Result<bool> advance_all(std::vector<std::unique_ptr<Operation>>& operations) {
  bool any = false;
  for (auto& operation : operations) {
    if (!TUTTI_TRY(operation->advance())) continue;
    operation.reset();
    any = true;
  }
  std::erase(operations, nullptr);
  return any;
}

namespace {

// What is left to do on one communicator, in the order of the calls.
struct Lineup {
  std::deque<const GroupedCall*> waiting;
  std::vector<std::unique_ptr<Operation>> running;
  bool alone = false;  // The running operation is a collective.

  bool done() const { return waiting.empty() && running.empty(); }
  bool holds_several() const { return waiting.size() + running.size() > 1; }

  // Messages start at once, up to the next collective; a collective starts when all before it is done.
  Status start() {
    while (!waiting.empty()) {
      const GroupedCall& next = *waiting.front();
      const bool message = next.call.kind == Kind::send || next.call.kind == Kind::recv;
      if (!running.empty() && (!message || alone)) return {};
      alone = !message;
      running.push_back(TUTTI_TRY(next.communicator->start(next.call, &next.options)));
      waiting.pop_front();
    }
    return {};
  }
  // True if any call came to its end.
  Result<bool> advance() {
    TUTTI_CHECK_OK(start());
    return advance_all(running);
  }
};

}  // namespace

void call_off(Communicator& communicator, const Status& reason) {
  (void)communicator.fail(
      remote_error("rank " + std::to_string(communicator.rank()) + " calls off its group: " + reason.message()));
}

Status drive(std::vector<std::unique_ptr<Operation>>& operations) {
  while (!operations.empty()) {
    const bool any = TUTTI_TRY(advance_all(operations));
    if (!any && !operations.empty()) TUTTI_CHECK_OK(operations.front()->wait());
  }
  return {};
}

// To start a call does not wait either, so one thread drives all communicators, be they ranks that wait for each other.
// One that fails does not stop the others, whose peers count on them.
Status run_group(const std::vector<GroupedCall>& calls) {
  std::map<Communicator*, Lineup> lineups;
  for (const GroupedCall& call : calls) lineups[call.communicator].waiting.push_back(&call);
  Status first;
  std::vector<Communicator*> failed;
  // One call that cannot be made is the caller's to correct, and harms nobody; those that fall with it do.
  const auto give_up = [&](Communicator& communicator, Lineup& lineup, Status status) {
    if (lineup.holds_several()) call_off(communicator, status);
    lineup = {};
    failed.push_back(&communicator);
    if (first.ok()) first = std::move(status);
  };
  while (!lineups.empty()) {
    bool any = false;
    for (auto& [communicator, lineup] : lineups) {
      auto advanced = lineup.advance();
      any = any || !advanced.ok() || advanced.value();
      if (!advanced.ok()) give_up(*communicator, lineup, std::move(advanced).status());
    }
    for (auto& [communicator, lineup] : lineups) {
      if (any || lineup.done()) continue;
      Status waited = lineup.running.front()->wait();
      if (!waited.ok()) give_up(*communicator, lineup, std::move(waited));
    }
    std::erase_if(lineups, [](const auto& entry) { return entry.second.done(); });
  }
  const Deadline deadline = Deadline::after_ms(kOutwaitMs);
  for (Communicator* communicator : failed) communicator->outwait_visitors(deadline);
  return first;
}

}  // namespace tutti
