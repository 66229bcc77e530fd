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
  bool alone = false;  // The running operation is a collective.
};

}  // namespace

Status drive(std::vector<std::unique_ptr<Operation>>& operations) {
  while (!operations.empty()) {
    const bool any = TUTTI_TRY(advance_all(operations));
    if (!any && !operations.empty()) TUTTI_CHECK_OK(operations.front()->wait());
  }
  return {};
}

Status run_group(const std::vector<GroupedCall>& calls) {
  std::map<Communicator*, Lineup> lineups;
  for (const GroupedCall& call : calls) lineups[call.communicator].waiting.push_back(&call);
  while (!lineups.empty()) {
    bool any = false;
    for (auto& [communicator, lineup] : lineups) {
      TUTTI_CHECK_OK(lineup.start());
      any = TUTTI_TRY(advance_all(lineup.running)) || any;
    }
    any = std::erase_if(lineups, [](const auto& entry) { return entry.second.running.empty() && entry.second.waiting.empty(); }) > 0 || any;
    for (auto& [communicator, lineup] : lineups) {
      if (!any && !lineup.running.empty()) TUTTI_CHECK_OK(lineup.running.front()->wait());
    }
  }
  return {};
}

}  // namespace tutti
