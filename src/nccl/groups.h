// Groups between ncclGroupStart and ncclGroupEnd. A group belongs to its thread. It collects jobs (communicators to
// create or split), calls, and ends of communicators; its end runs the jobs, then the others. A group of non-
// blocking communicators has either jobs or calls, because its end does not wait for jobs.
#pragma once

#include <functional>
#include <utility>

#include "src/nccl/calls.h"
#include "src/nccl/communicator.h"
#include "src/nccl/errors.h"

namespace tutti::nccl {

// Waits for peers, so in a group each communicator has a thread of its own, for its jobs in order.
struct Job {
  Shared communicator;  // In progress meanwhile, if it is non-blocking.
  std::function<Outcome()> work;
  std::function<void()> undo;  // Once, if the work fails or is not done. Null: nothing to undo.
};

bool in_group();
// Runs it, or lets the open group or the background do so.
Outcome submit(Job job);
Outcome submit(Call call);
// Has it do all that it was given. There is no call for it after this one.
Outcome submit_end(const Shared& communicator);

// Runs the calls that the body submits together, within an open group or in a group of their own.
Outcome in_own_group(const std::function<Outcome()>& body);

// The first failure of a group, which runs nothing then and is told again by its end.
void fail_group(const Outcome& outcome);

// For functions that take part in an open group.
template <typename Body>
ncclResult_t grouped(const char* function, Body&& body) {
  const Outcome outcome = caught(std::forward<Body>(body));
  if (outcome.failed() && in_group()) fail_group(outcome);
  return report(function, outcome);
}

}  // namespace tutti::nccl
