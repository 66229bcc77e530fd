// Slow path of calls: created reductions, groups, streams, and calls that must wait for earlier work in streams.
#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "src/api/call_entry.h"
#include "src/api/lifecycle.h"
#include "src/api/on_device.h"
#include "src/api/self_messages.h"
#include "src/api/streams.h"
#include "src/api/ticket.h"
#include "src/base/per_thread.h"
#include "src/communicator/group.h"

namespace tutti {

thread_local constinit int group_depth = 0;

namespace {

// A deferred call.
struct Pending {
  std::shared_ptr<SharedComm> shared;
  GroupedCall grouped;
  std::shared_ptr<const Unequal> unequal;  // Shared because std::function copies its captures.
  tutti_stream stream = nullptr;
};

// Calls that run together, after all earlier calls of their communicators.
struct Batch {
  std::vector<Pending> calls;
  std::vector<GroupedCall> grouped;  // `calls`, in the form that run_group() needs.
  std::vector<Ticket> tickets;
  Status refusal;  // Error of another call of the group, for which these calls are cancelled in order.
  std::shared_ptr<SharedComm> refused;  // The other rank of a communicator of `calls` that made this call; null: none.
};

struct Group {
  std::vector<Pending> calls;
  std::vector<DeviceCall> device_calls;                 // Enqueued before `calls`, since enqueueing does not block.
  std::vector<std::shared_ptr<SharedComm>> on_devices;  // Owners of `device_calls`.
  std::vector<Ending> endings;                          // Run after all calls.
  Status failure;
  std::shared_ptr<SharedComm> refused;  // Communicator of the call that was rejected with `failure`.
};

PerThread<Group> groups;
thread_local constinit bool group_lacked_memory = false;  // A failure could not be stored in the thread's group.

Group& group_of_thread() {
  Group* group = groups.get();
  if (group == nullptr) throw std::bad_alloc();
  return *group;
}

// Returns the calls since tutti_group_start, and empties the thread's group. Throws nothing.
Group take_group() {
  Group taken;
  if (Group* group = groups.get()) taken = std::exchange(*group, {});
  if (std::exchange(group_lacked_memory, false) && taken.failure.ok()) taken.failure = out_of_memory();
  return taken;
}

// Returns a copy of `status`. Throws nothing.
Status copy_of(const Status& status) {
  return caught([&] { return status.copy(); });
}

Pending pending_of(const CallEntry& entry, const CommHandle& handle, const Call& call) {
  Pending pending;
  pending.shared = handle.shared;
  pending.grouped.communicator = handle.shared->communicator.get();
  pending.grouped.call = call;
  pending.grouped.options = options_of(handle);
  if (call.unequal != nullptr) pending.unequal = std::make_shared<const Unequal>(*call.unequal);
  pending.grouped.call.unequal = pending.unequal.get();
  pending.stream = entry.stream;
  return pending;
}

// Returns whether `communicator` and `shared` are two ranks of one communicator.
bool is_peer_of(const Communicator& communicator, const SharedComm& shared) {
  const Communicator& own = *shared.communicator;
  return &communicator != &own && communicator.mesh().hosts().id() == own.mesh().hosts().id();
}

// Takes a ticket for each communicator. Batches run in the order of these calls.
void line_up(Batch& batch) {
  const auto take_ticket = [&](const std::shared_ptr<SharedComm>& shared) {
    const auto is_same = [&](const Ticket& ticket) { return ticket.shared() == shared.get(); };
    if (std::none_of(batch.tickets.begin(), batch.tickets.end(), is_same)) batch.tickets.emplace_back(shared);
  };
  for (const Pending& pending : batch.calls) {
    batch.grouped.push_back(pending.grouped);
    take_ticket(pending.shared);
  }
  if (batch.refused != nullptr) take_ticket(batch.refused);
}

// Cancels the calls of this rank, for which peers in the same group would wait.
void abandon(SharedComm& shared, const Status& reason) {
  call_off(*shared.communicator, reason);
  shared.reported = true;
}

void abandon(const std::vector<Pending>& calls, const Status& reason) {
  for (const Pending& pending : calls) abandon(*pending.shared, reason);
}

Status run_calls(const Batch& batch) {
  for (const Ticket& ticket : batch.tickets) ticket.await();
  if (batch.refusal.ok()) return run_group(batch.grouped);
  // All ranks report the rank that calls off first.
  if (batch.refused != nullptr) abandon(*batch.refused, batch.refusal);
  abandon(batch.calls, batch.refusal);
  return copy_of(batch.refusal);
}

// Throws nothing.
Status run_in_order(Batch& batch) {
  Status status = run_calls(batch);
  for (const Ticket& ticket : batch.tickets) status = note_failure(*ticket.shared(), std::move(status));
  batch.tickets.clear();
  return status;
}

struct Outcome {
  Event done;
  Status status;
};

// Runs the batch in the first stream. The other streams wait for it, and it waits for their earlier work.
Status run_in_streams(const std::shared_ptr<Batch>& batch, const std::vector<std::shared_ptr<Stream>>& streams) {
  const std::vector<Pending>& calls = batch->calls;
  const bool blocks =
      std::any_of(calls.begin(), calls.end(), [](const Pending& call) { return call.stream == nullptr; });
  Stream& first = *streams.front();
  for (std::size_t i = 1; i < streams.size(); ++i) {
    Event before;
    before.record(*streams[i]);
    before.hold(first);
  }
  // Shared: without blocking calls, the stream completes the batch after this function returns.
  const auto outcome = std::make_shared<Outcome>();
  first.enqueue([batch, outcome]() -> Status {
    Status status = run_in_order(*batch);
    outcome->status = copy_of(status);
    return status;
  });
  outcome->done.record(first);
  for (std::size_t i = 1; i < streams.size(); ++i) outcome->done.hold(*streams[i]);
  if (!blocks) return {};
  outcome->done.synchronize();
  return std::move(outcome->status);
}

Result<std::vector<std::shared_ptr<Stream>>> streams_of(const std::vector<Pending>& calls) {
  std::vector<std::shared_ptr<Stream>> streams;
  for (const Pending& pending : calls) {
    if (pending.stream == nullptr) continue;
    const std::shared_ptr<Stream> stream = TUTTI_TRY(stream_of(pending.stream));
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }
  return streams;
}

// A call that fails reports to the peers itself. An exception on the way to the call is reported here.
Status run_pending(std::vector<Pending> calls, const std::vector<std::shared_ptr<Stream>>& streams,
                   const Status& refusal = {}, const std::shared_ptr<SharedComm>& refused = nullptr) {
  if (calls.empty()) return {};
  std::shared_ptr<Batch> batch;  // Shared because std::function copies its captures.
  Status ran;
  Status thrown = caught([&]() -> Status {
    batch = std::make_shared<Batch>();
    batch->calls.swap(calls);
    batch->refusal = copy_of(refusal);
    const auto is_peer = [&](const Pending& call) { return is_peer_of(*call.grouped.communicator, *refused); };
    if (refused != nullptr && std::any_of(batch->calls.begin(), batch->calls.end(), is_peer)) batch->refused = refused;
    line_up(*batch);
    ran = streams.empty() ? run_in_order(*batch) : run_in_streams(batch, streams);
    return {};
  });
  if (thrown.ok()) return ran;
  abandon(batch == nullptr ? calls : batch->calls, thrown);
  // The stream may still hold the calls; abandoned calls complete at once.
  if (!streams.empty()) (void)streams.front()->synchronize();
  return thrown;
}

std::vector<MadeCall> calls_of(const Group& group) {
  std::vector<MadeCall> calls;
  for (const Pending& pending : group.calls) calls.emplace_back(pending.grouped.communicator, &pending.grouped.call);
  for (const DeviceCall& call : group.device_calls) calls.emplace_back(call.communicator, &call.call);
  return calls;
}

// Throws nothing.
Status run_on_devices(Group& group) {
  if (group.device_calls.empty()) return {};
  Status status;
  if (group.failure.ok()) {
    status = enqueue(group.device_calls);
  } else {
    const auto is_peer = [&](const DeviceCall& call) { return is_peer_of(*call.communicator, *group.refused); };
    if (group.refused != nullptr && std::any_of(group.device_calls.begin(), group.device_calls.end(), is_peer))
      abandon(*group.refused, group.failure);
    for (const DeviceCall& call : group.device_calls) call_off(*call.communicator, group.failure);
  }
  for (const auto& shared : group.on_devices) status = note_failure(*shared, std::move(status));
  return status;
}

Status run_on_hosts(Group& group) {
  auto streams = caught([&] { return streams_of(group.calls); });  // Fails if a stream was destroyed since the call.
  if (!streams.ok()) {
    Status status = group.failure.ok() ? std::move(streams).status() : std::move(group.failure);
    abandon(group.calls, status);
    return status;
  }
  Status ran = run_pending(std::move(group.calls), streams.value(), group.failure, group.refused);
  return group.failure.ok() ? std::move(ran) : std::move(group.failure);
}

Status run_all(Group& group) {
  if (group.failure.ok()) group.failure = caught([&] { return check_messages_to_self(calls_of(group)); });
  Status on_devices = run_on_devices(group);
  Status on_hosts = run_on_hosts(group);
  return on_devices.ok() ? std::move(on_hosts) : std::move(on_devices);
}

// Returns the predicted time in us. Calls of one communicator run one after another; communicators run concurrently.
Result<double> predict_all(const Group& group) {
  std::map<const Communicator*, double> ends_us;
  for (const Pending& pending : group.calls) {
    const GroupedCall& made = pending.grouped;
    ends_us[made.communicator] += TUTTI_TRY(made.communicator->predict_us(made.call, made.options));
  }
  for (const DeviceCall& made : group.device_calls)
    ends_us[made.communicator] += TUTTI_TRY(made.communicator->predict_us(made.call, made.options));
  double last_us = 0;
  for (const auto& [communicator, end_us] : ends_us) last_us = std::max(last_us, end_us);
  return last_us;
}

Status enter_on_device(const CallEntry& entry, const CommHandle& handle, const Call& call) {
  const std::vector<DeviceCall> calls = device_calls(handle, call, entry.stream);
  if (!in_group()) return note_failure(*handle.shared, enqueue(calls));
  Group& group = group_of_thread();
  group.on_devices.push_back(handle.shared);
  group.device_calls.insert(group.device_calls.end(), calls.begin(), calls.end());
  return {};
}

Status resolve(const CallEntry& entry, const CommHandle& handle, Call& call) {
  if (static_cast<std::uint32_t>(entry.reduction) <= tutti_bxor) return check_supported(call.type, call.reduction);
  for (const PreMulSum& made : handle.shared->reductions) {
    if (made.number != entry.reduction) continue;
    if (made.type != call.type) {
      return invalid_argument(std::string("reduction was made for ") + name(made.type) + ", the call is of " +
                              name(call.type));
    }
    call.reduction = Reduction::pre_mul_sum;
    call.scalar = made.scalar;
    call.imaginary_scalar = made.imaginary_scalar;
    call.integer_scalar = made.integer_scalar;
    call.factor = made.factor;
    return {};
  }
  return invalid_argument("invalid reduction " + std::to_string(entry.reduction) +
                          "; pass tutti_sum ... tutti_bxor, or one created for this communicator and not destroyed");
}

Status enter_open(const CallEntry& entry, const Unequal* unequal, const CommHandle& handle) {
  Call call = call_of(entry);
  call.unequal = unequal;
  TUTTI_CHECK_OK(resolve(entry, handle, call));
  if (handle.shared->has_residuals)
    TUTTI_CHECK_OK(find_residual(handle.shared->residuals, handle.rank, handle.ranks, call));
  if (handle.shared->on_device != nullptr) return enter_on_device(entry, handle, call);
  if (entry.stream != nullptr) {
    TUTTI_CHECK_OK(stream_of(entry.stream).status());
  } else {
    TUTTI_CHECK_OK(check_outside_callback("a call without a stream"));
  }
  if (group_depth == 0 && entry.stream == nullptr && handle.shared->queued.load(std::memory_order_acquire) == 0) {
    return note_failure(*handle.shared, handle.shared->communicator->run(call, handle.options));
  }
  std::vector<Pending> calls;
  calls.push_back(pending_of(entry, handle, call));
  if (!in_group()) {
    const auto streams = TUTTI_TRY(streams_of(calls));
    return run_pending(std::move(calls), streams);
  }
  group_of_thread().calls.push_back(std::move(calls.front()));
  return {};
}

Status enter_checked(const CallEntry& entry, const Unequal* unequal) {
  const CommHandle* known = TUTTI_TRY(handle_of(entry.comm));
  const CommHandle& handle = *known;
  if (handle.runner == nullptr) return no_runner(handle);
  if (!plausible(entry, handle)) return explain(entry, handle);
  if (!in_group() && is_to_self(entry, handle))
    return invalid_usage("rank " + std::to_string(handle.rank) +
                         (entry.kind == Kind::send ? " sends to itself" : " receives from itself") +
                         " and would wait for itself: put the send and the recv in one group");
  Status entered;
  Status thrown = caught([&]() -> Status {
    entered = enter_open(entry, unequal, handle);
    return {};
  });
  if (thrown.ok()) return entered;
  abort_pending(handle, thrown);
  return thrown;
}

}  // namespace

void abort_pending(const CommHandle& handle, const Status& reason) { abandon(*handle.shared, reason); }

tutti_status enter_slowly(CallEntry entry, const Unequal* unequal) {
  const tutti_status answer = guarded(entry.function, [&] { return enter_checked(entry, unequal); });
  return held_by_group(shown_to_peers(answer, entry), entry.comm);
}

Status end_with_group(const Ending& ending) {
  for (Ending& other : group_of_thread().endings) {
    if (other.comm != ending.comm) continue;
    if (other.destroys || !ending.destroys) return invalid_usage("the group ends this communicator already");
    other.destroys = true;
    return {};
  }
  group_of_thread().endings.push_back(ending);
  return {};
}

tutti_status held_by_group(tutti_status answer, tutti_comm comm) {
  if (answer == tutti_ok || !in_group()) return answer;
  Group* group = groups.get();
  if (group == nullptr) {
    group_lacked_memory = true;
  } else if (group->failure.ok()) {
    group->failure = caught([&] { return Status(static_cast<Code>(answer), last_error_of_thread()); });
    const Result<CommHandle*> handle = handle_of(comm);
    if (handle.ok() && handle.value()->runner != nullptr) group->refused = handle.value()->shared;
  }
  return answer;
}

}  // namespace tutti

extern "C" {

tutti_status tutti_group_start(void) {
  if (tutti::in_callback()) {
    return tutti::report("tutti_group_start", tutti::invalid_usage("a callback must not open a group"));
  }
  ++tutti::group_depth;
  return tutti_ok;
}

tutti_status tutti_group_end(void) {
  using tutti::Status;
  return tutti::guarded("tutti_group_end", []() -> Status {
    if (!tutti::in_group()) return tutti::invalid_usage("no group is open: call tutti_group_start first");
    if (--tutti::group_depth > 0) return {};
    tutti::Group group = tutti::take_group();
    Status ran = tutti::run_all(group);
    // Runs even after a failure: the caller has already given up the handles.
    Status ended = tutti::end_all(group.endings);
    return ran.ok() ? std::move(ended) : std::move(ran);
  });
}

tutti_status tutti_group_simulate_end(double* time_us) {
  using tutti::Status;
  return tutti::guarded("tutti_group_simulate_end", [&]() -> Status {
    if (time_us == nullptr) return tutti::invalid_argument("time_us is null: pass a pointer to a double");
    if (!tutti::in_group()) return tutti::invalid_usage("no group is open: call tutti_group_start first");
    if (tutti::group_depth > 1)
      return tutti::invalid_usage("several groups are open: end the inner ones by tutti_group_end");
    tutti::group_depth = 0;
    tutti::Group group = tutti::take_group();
    if (!group.failure.ok()) return std::move(group.failure);
    if (!group.endings.empty()) {
      return tutti::invalid_usage(
          "the group ends communicators: use tutti_group_end. This group is over; it ran no call and ended no "
          "communicator");
    }
    *time_us = TUTTI_TRY(tutti::predict_all(group));
    return {};
  });
}

}  // extern "C"
