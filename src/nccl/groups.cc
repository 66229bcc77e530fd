#include "src/nccl/groups.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "src/nccl/door.h"
#include "src/nccl/threads.h"

namespace tutti::nccl {
namespace {

enum class Running { runs, simulates };

// Apart from the group, so that calls outside of groups look at a plain number.
thread_local constinit int depth = 0;

struct Group {
  Outcome failure;
  std::optional<Mode> mode;  // Of all that take part.
  std::vector<Job> jobs;
  std::vector<Call> calls;
};

Group& group_of_thread() {
  thread_local Group group;
  return group;
}

Outcome run(Job& job) {
  Outcome outcome = caught(job.work);
  if (outcome.failed() && job.undo) job.undo();
  return outcome;
}

// Ranks of one thread wait for each other.
Outcome run_together(std::vector<Job>& jobs) {
  std::vector<Outcome> outcomes(jobs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    try {
      threads.push_back(start_thread([&, i] { outcomes[i] = run(jobs[i]); }));
    } catch (const std::system_error& error) {
      outcomes[i] = {ncclSystemError, std::string("start a thread: ") + error.what()};
      for (Job& job : jobs) job.communicator->abort();  // Nobody shall wait for this one.
      if (jobs[i].undo) jobs[i].undo();
    }
  }
  outcomes[0] = run(jobs[0]);
  for (std::thread& thread : threads) thread.join();
  const auto failed = std::find_if(outcomes.begin(), outcomes.end(), [](const Outcome& one) { return one.failed(); });
  return failed == outcomes.end() ? Outcome() : *failed;
}

Outcome run_jobs(std::vector<Job>& jobs, Mode mode) {
  if (jobs.empty()) return {};
  if (mode == Mode::blocking) return run_together(jobs);
  for (Job& job : jobs) job.communicator->begin(job.communicator, job.work);
  return {};
}

Outcome run_group(Group& group, Running running) {
  if (group.failure.failed()) {
    for (Job& job : group.jobs) {
      if (job.undo) job.undo();
    }
    return group.failure;
  }
  if (!group.mode) return {};  // It is empty.
  TUTTI_NCCL_CHECK(run_jobs(group.jobs, *group.mode));
  if (running == Running::simulates) group.calls.clear();
  TUTTI_NCCL_CHECK(launch(group.calls));
  const bool works = !group.jobs.empty() || !group.calls.empty();
  return works && *group.mode == Mode::non_blocking ? in_progress() : Outcome();
}

Outcome end_group(Running running) {
  if (depth == 0) return invalid_usage("no group is open: call ncclGroupStart first");
  if (--depth > 0) return {};
  Group group = std::exchange(group_of_thread(), {});
  return run_group(group, running);
}

Outcome enroll(Mode mode) {
  Group& group = group_of_thread();
  if (group.mode.value_or(mode) != mode) {
    return invalid_argument("the group has blocking and non-blocking communicators: give each kind a group of its own");
  }
  group.mode = mode;
  return {};
}

Outcome check_simulation(const ncclSimInfo_t* info) {
  if (info == nullptr) return invalid_argument("simInfo is NULL: pass one that begins with NCCL_SIM_INFO_INITIALIZER");
  if (info->magic == kSimInfoMagic && info->size >= sizeof *info) return {};
  return invalid_argument("simInfo has another magic or size: begin with NCCL_SIM_INFO_INITIALIZER");
}

}  // namespace

bool in_group() { return depth > 0; }

void fail_group(const Outcome& outcome) {
  Group& group = group_of_thread();
  if (!group.failure.failed()) group.failure = outcome;
}

Outcome submit(Job job) {
  const Mode mode = job.communicator->settings.mode;
  if (in_group()) {
    TUTTI_NCCL_CHECK(enroll(mode));
    group_of_thread().jobs.push_back(std::move(job));
    return {};
  }
  if (mode == Mode::blocking) return run(job);
  job.communicator->begin(job.communicator, job.work);
  return in_progress();
}

Outcome submit(Call call) {
  const Mode mode = call.communicator->settings.mode;
  if (in_group()) {
    TUTTI_NCCL_CHECK(enroll(mode));
    group_of_thread().calls.push_back(std::move(call));
    return {};
  }
  TUTTI_NCCL_CHECK(launch(call));
  return mode == Mode::blocking ? Outcome() : in_progress();
}

Outcome in_own_group(const std::function<Outcome()>& body) {
  ++depth;
  Outcome outcome = caught(body);
  if (outcome.failed()) fail_group(outcome);
  Outcome ended = end_group(Running::runs);
  return outcome.failed() ? outcome : ended;
}

TUTTI_NCCL_DOOR(ncclResult_t, GroupStart, void) {
  ++depth;
  return ncclSuccess;
}

TUTTI_NCCL_DOOR(ncclResult_t, GroupEnd, void) {
  return guarded("ncclGroupEnd", [] { return end_group(Running::runs); });
}

// There is no cost model of calls yet, so the time is unknown: -1.
TUTTI_NCCL_DOOR(ncclResult_t, GroupSimulateEnd, ncclSimInfo_t* info) {
  return guarded("ncclGroupSimulateEnd", [&]() -> Outcome {
    Outcome checked = check_simulation(info);
    if (checked.failed() && in_group()) fail_group(checked);
    Outcome ended = end_group(Running::simulates);
    if (checked.failed()) return checked;
    if (!ended.failed()) info->estimatedTime = kNoTime;
    return ended;
  });
}

}  // namespace tutti::nccl
