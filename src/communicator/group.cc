#include "src/communicator/group.h"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>

#include "src/communicator/stream.h"

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

namespace {

Status obey(Lineup& lineup) {
  while (!lineup.waiting.empty() || !lineup.running.empty()) {
    TUTTI_CHECK_OK(lineup.start());
    const bool any = TUTTI_TRY(advance_all(lineup.running));
    if (!any && !lineup.running.empty()) TUTTI_CHECK_OK(lineup.running.front()->wait());
  }
  return {};
}

}  // namespace

Status run_group(const std::vector<GroupedCall>& calls) {
  std::map<Communicator*, Lineup> lineups;
  for (const GroupedCall& call : calls) lineups[call.communicator].waiting.push_back(&call);
  std::vector<Status> outcomes(lineups.size());
  std::vector<std::thread> threads;
  std::size_t index = 0;
  // To start a call may be to wait for peers, which may be other ranks of this group: each has a thread, all but the
  // last, which has ours.
  for (auto& [communicator, lineup] : lineups) {
    Status& outcome = outcomes[index++];
    if (index < lineups.size()) {
      threads.push_back(quiet_thread([&outcome, &lineup = lineup] { outcome = obey(lineup); }));
    } else {
      outcome = obey(lineup);
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (Status& outcome : outcomes) TUTTI_CHECK_OK(std::move(outcome));
  return {};
}

}  // namespace tutti
