#include "src/communicator/group.h"

#include <algorithm>
#include <deque>
#include <map>

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
  const auto give_up = [&first](Lineup& lineup, Status status) {
    lineup = {};
    if (first.ok()) first = std::move(status);
  };
  while (!lineups.empty()) {
    bool any = false;
    for (auto& [communicator, lineup] : lineups) {
      auto advanced = lineup.advance();
      any = any || !advanced.ok() || advanced.value();
      if (!advanced.ok()) give_up(lineup, std::move(advanced).status());
    }
    for (auto& [communicator, lineup] : lineups) {
      if (any || lineup.done()) continue;
      Status waited = lineup.running.front()->wait();
      if (!waited.ok()) give_up(lineup, std::move(waited));
    }
    std::erase_if(lineups, [](const auto& entry) { return entry.second.done(); });
  }
  return first;
}

}  // namespace tutti
