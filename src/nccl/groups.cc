#include "src/nccl/groups.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/no_cancellation.h"
#include "src/nccl/export.h"
#include "src/nccl/memory.h"
#include "src/nccl/threads.h"

namespace tutti::nccl {
namespace {

// Separate from the group, so that calls outside of groups check a plain number.
thread_local constinit int depth = 0;

struct Group {
  Outcome failure;
  std::optional<Mode> mode;  // Mode of all communicators in the group.
  std::vector<Job> jobs;
  std::vector<Call> calls;
  std::vector<Shared> ending;
};

// Exists from the first job, call or failure of a group to its end. Not a thread_local object: destructors that run at
// program exit may still use groups, after such objects are destroyed.
thread_local constinit Group* open_group = nullptr;

// Library with an open group in this thread; null: none. Such a group has no jobs: the library would defer what they
// call in this thread.
thread_local constinit FallbackLibrary* fallback_group = nullptr;

Outcome needs_two_groups() {
  return invalid_usage(
      "a group with calls of the library of TUTTI_NCCL_FALLBACK must not create or change communicators or register "
      "windows; use two groups");
}

Group& group_of_thread() {
  if (open_group == nullptr) open_group = new Group;
  return *open_group;
}

void undo(const Job& job) {
  if (job.undo) job.undo();
}

Outcome run(const Job& job) {
  Outcome outcome = caught(job.work);
  if (outcome.failed()) undo(job);
  return outcome;
}

// Jobs of one communicator, in order. After a failure the remaining ones are skipped.
struct PendingJobs {
  std::vector<Job> jobs;
  Outcome outcome = {};

  void run() {
    for (const Job& job : jobs) {
      if (outcome.failed()) {
        undo(job);
      } else {
        outcome = nccl::run(job);
      }
    }
  }
  void refuse(Outcome reason) {
    outcome = std::move(reason);
    run();
  }
};

std::vector<PendingJobs> sort_by_communicator(std::vector<Job>& jobs) {
  std::vector<PendingJobs> pending;
  for (Job& job : jobs) {
    const auto found = std::find_if(pending.begin(), pending.end(), [&](const PendingJobs& jobs_of_one) {
      return jobs_of_one.jobs.front().communicator == job.communicator;
    });
    PendingJobs& jobs_of_one = found == pending.end() ? pending.emplace_back() : *found;
    jobs_of_one.jobs.push_back(std::move(job));
  }
  return pending;
}

// Runs the jobs of each communicator in a thread of its own, because ranks of one thread wait for each other.
Outcome run_together(std::vector<Job>& jobs) {
  const NoCancellation until_return;
  std::vector<PendingJobs> pending = sort_by_communicator(jobs);
  std::vector<std::thread> threads;
  threads.reserve(pending.size());
  for (std::size_t i = 1; i < pending.size(); ++i) {
    PendingJobs& jobs_of_one = pending[i];
    Outcome started = caught([&]() -> Outcome {
      threads.push_back(start_thread([&jobs_of_one] { jobs_of_one.run(); }));
      return {};
    });
    if (!started.failed()) continue;
    for (const PendingJobs& waiting : pending)
      waiting.jobs.front().communicator->abort();  // So that no rank waits for it.
    jobs_of_one.refuse(std::move(started));
  }
  pending.front().run();
  for (std::thread& thread : threads) thread.join();
  for (PendingJobs& jobs_of_one : pending) {
    if (jobs_of_one.outcome.failed()) return std::move(jobs_of_one.outcome);
  }
  return {};
}

Outcome run_jobs(std::vector<Job>& jobs, Mode mode) {
  if (jobs.empty()) return {};
  if (mode == Mode::blocking) return run_together(jobs);
  for (Job& job : jobs) job.communicator->begin(job.communicator, job.work);
  return {};
}

// Waits for enqueued calls where necessary, and finalizes the communicator of the fallback library. On host memory, a
// blocking communicator has finished all calls; a non-blocking one is in progress until it has.
Outcome end(const Shared& communicator) {
  const bool blocking = communicator->settings.mode == Mode::blocking;
  if (!enqueues(communicator->settings) && communicator->fallback() == nullptr)
    return blocking ? Outcome() : in_progress();
  const auto finish = [communicator]() -> Outcome {
    TUTTI_NCCL_CHECK(communicator->flush());
    return communicator->fallback() == nullptr ? Outcome() : communicator->fallback()->finalize();
  };
  if (blocking) return finish();
  communicator->begin(communicator, finish);
  return in_progress();
}

Outcome end_all(const std::vector<Shared>& communicators) {
  Outcome all;
  for (const Shared& communicator : communicators) {
    Outcome ended = end(communicator);
    if (ended.failed()) return ended;
    if (ended.code == ncclInProgress) all = std::move(ended);
  }
  return all;
}

Outcome run_group(Group& group) {
  if (group.failure.failed()) {
    for (const Job& job : group.jobs) undo(job);
    return group.failure;
  }
  for (const Call& call : group.calls) {
    if (!call.communicator->is_suspended()) continue;
    for (const Job& job : group.jobs) undo(job);
    return invalid_usage("ncclCommSuspend follows calls of the same group; end the group before it");
  }
  if (group.mode) TUTTI_NCCL_CHECK(run_jobs(group.jobs, *group.mode));
  TUTTI_NCCL_CHECK(launch(group.calls));
  bool works = !group.jobs.empty() && *group.mode == Mode::non_blocking;
  for (const Call& call : group.calls) works = works || call.communicator->stream() != nullptr;
  return works ? in_progress() : Outcome();
}

// Predicts the time of the group without running anything.
Outcome simulate_group(Group& group, ncclSimInfo_t* info) {
  if (!group.failure.failed() && !(group.jobs.empty() && group.ending.empty()))
    group.failure = invalid_usage(
        "ncclGroupSimulateEnd does not support groups that create, split or destroy communicators; end these groups "
        "with ncclGroupEnd");
  if (!group.failure.failed() && fallback_group != nullptr)
    group.failure = invalid_usage(
        "ncclGroupSimulateEnd does not support calls of the library of TUTTI_NCCL_FALLBACK; end these groups with "
        "ncclGroupEnd");
  if (group.failure.failed()) return run_group(group);
  double time_us = 0;
  TUTTI_NCCL_CHECK(simulate(group.calls, time_us));
  info->estimatedTime = static_cast<float>(time_us);
  return {};
}

enum class Ending { run, simulate };

// The calls of the library run even if the group has failed, because NCCL cannot cancel them. A simulated end runs
// none.
Outcome end_fallback_group(Ending ending) {
  FallbackLibrary* library = std::exchange(fallback_group, nullptr);
  if (library == nullptr) return {};
  if (ending == Ending::simulate) {
    ncclSimInfo_t ignored = {sizeof ignored, kSimInfoMagic, kVersion, kNoTime};
    return library->run("ncclGroupSimulateEnd", &ignored);
  }
  return library->run("ncclGroupEnd");
}

// `info` receives the time of a simulated group; null only if the group has failed.
Outcome end_group(Ending ending = Ending::run, ncclSimInfo_t* info = nullptr) {
  if (depth == 0) return invalid_usage("no group is open: call ncclGroupStart first");
  if (--depth > 0) return {};
  const std::unique_ptr<Group> opened(std::exchange(open_group, nullptr));
  Group none;
  Group& group = opened == nullptr ? none : *opened;
  Outcome ended = caught([&] { return ending == Ending::run ? run_group(group) : simulate_group(group, info); });
  Outcome next = end_fallback_group(ending);
  if (!ended.failed() && !next.failed()) {
    if (next.code == ncclInProgress) ended = next;
    next = end_all(group.ending);
  }
  return ended.failed() || next.code == ncclSuccess ? ended : next;
}

enum class Part { job, call };

Outcome enroll(const Communicator& communicator, Part part) {
  Group& group = group_of_thread();
  const Mode mode = communicator.settings.mode;
  if (group.mode.value_or(mode) != mode) {
    return invalid_argument(
        "the group has blocking and non-blocking communicators; use a separate group for each kind");
  }
  if (mode == Mode::non_blocking && !(part == Part::job ? group.calls.empty() : group.jobs.empty())) {
    return invalid_usage(
        "a group of non-blocking communicators must not both create communicators and make calls; use two groups, and "
        "call ncclCommGetAsyncError between them");
  }
  group.mode = mode;
  return {};
}

Outcome enroll(Job& job) {
  if (fallback_group != nullptr) return needs_two_groups();
  TUTTI_NCCL_CHECK(enroll(*job.communicator, Part::job));
  group_of_thread().jobs.push_back(std::move(job));
  return {};
}

Outcome check_simulation(const ncclSimInfo_t* info) {
  if (info == nullptr)
    return invalid_argument("simInfo is NULL; pass a pointer to a struct initialized with NCCL_SIM_INFO_INITIALIZER");
  if (info->magic == kSimInfoMagic && info->size >= sizeof *info) return {};
  return invalid_argument("simInfo has a wrong magic or size; initialize it with NCCL_SIM_INFO_INITIALIZER");
}

}  // namespace

bool in_group() { return depth > 0; }

void fail_group(const Outcome& outcome) {
  (void)caught([&]() -> Outcome {
    Group& group = group_of_thread();
    if (!group.failure.failed()) group.failure = outcome;
    return {};
  });
}

Outcome submit(Job job) {
  if (in_group()) {
    Outcome enrolled = caught([&] { return enroll(job); });
    if (enrolled.failed()) undo(job);
    return enrolled;
  }
  if (job.communicator->settings.mode == Mode::blocking) return run(job);
  job.communicator->begin(job.communicator, job.work);
  return in_progress();
}

Outcome submit(Call call) {
  if (in_group()) {
    TUTTI_NCCL_CHECK(enroll(*call.communicator, Part::call));
    group_of_thread().calls.push_back(std::move(call));
    return {};
  }
  TUTTI_NCCL_CHECK(launch(call));
  return call.communicator->stream() == nullptr ? Outcome() : in_progress();
}

Outcome open_group_of(FallbackLibrary& library) {
  if (!in_group() || fallback_group != nullptr) return {};
  if (open_group != nullptr && !open_group->jobs.empty()) return needs_two_groups();
  TUTTI_NCCL_CHECK(library.run("ncclGroupStart"));
  fallback_group = &library;
  return {};
}

Outcome submit_end(const Shared& communicator) {
  if (!in_group()) return end(communicator);
  group_of_thread().ending.push_back(communicator);
  return {};
}

Outcome in_own_group(const std::function<Outcome()>& body) {
  ++depth;
  Outcome outcome = caught(body);
  if (outcome.failed()) fail_group(outcome);
  Outcome ended = end_group();
  return outcome.failed() ? outcome : ended;
}

TUTTI_NCCL_API(ncclResult_t, GroupStart, void) {
  ++depth;
  return ncclSuccess;
}

TUTTI_NCCL_API(ncclResult_t, GroupEnd, void) {
  return guarded("ncclGroupEnd", [] { return end_group(); });
}

// Only the end of the outermost group predicts a time, for all calls of the group. Inner ends set kNoTime.
TUTTI_NCCL_API(ncclResult_t, GroupSimulateEnd, ncclSimInfo_t* info) {
  return guarded("ncclGroupSimulateEnd", [&]() -> Outcome {
    const Outcome checked = check_simulation(info);
    if (!checked.failed()) info->estimatedTime = kNoTime;
    if (checked.failed() && in_group()) fail_group(checked);
    const Outcome ended = end_group(Ending::simulate, info);
    return checked.failed() ? checked : ended;
  });
}

}  // namespace tutti::nccl
