// Groups between ncclGroupStart and ncclGroupEnd. A group belongs to its thread. It collects jobs (communicators to
// create or split), calls, and ends of communicators; its end runs the jobs, then the others. A group of non-
// blocking communicators has either jobs or calls, because its end does not wait for jobs.
#pragma once

#include <functional>
#include <utility>

#include "src/nccl/calls.h"
#include "src/nccl/communicator.h"
#include "src/nccl/errors.h"
#include "src/nccl/fallback.h"

namespace tutti::nccl {

// A job waits for peers. In a group, the jobs of each communicator therefore run in order in a thread of their own.
struct Job {
  Shared communicator;  // In progress until the job is done, if non-blocking.
  std::function<Outcome()> work;
  std::function<void()> undo;  // Called once if the work fails or is not run; null: no-op.
};

bool in_group();
// Runs the job or call, or adds it to the open group or the background queue.
Outcome submit(Job job);
Outcome submit(Call call);
// Ends the communicator after all work submitted before. No call may follow.
Outcome submit_end(const Shared& communicator);

// Runs the calls that the body submits together, within an open group or in a group of their own.
Outcome in_own_group(const std::function<Outcome()>& body);

// Opens a group of the fallback library that ends with the open group of this thread, if there is one, so that the
// library runs the calls of the group together.
Outcome open_group_of(FallbackLibrary& library);

// Records the first failure of the open group. The group then runs nothing, and its end returns this failure, too.
void fail_group(const Outcome& outcome);

// For functions that take part in an open group.
template <typename Body>
ncclResult_t grouped(const char* function, Body&& body) {
  const Outcome outcome = caught(std::forward<Body>(body));
  if (outcome.failed() && in_group()) fail_group(outcome);
  return report(function, outcome);
}

}  // namespace tutti::nccl
