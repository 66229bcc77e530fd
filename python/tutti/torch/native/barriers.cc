#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

using Clock = std::chrono::steady_clock;

Milliseconds until(Clock::time_point deadline) {
  return std::max(Milliseconds(1), std::chrono::ceil<Milliseconds>(deadline - Clock::now()));
}

// Waits for a key. Returns false if the deadline has passed; stores have no common exception for this.
bool wait_for(c10d::Store& store, const std::string& key, Clock::time_point deadline) {
  try {
    store.wait({key}, until(deadline));
    return true;
  } catch (const std::exception&) {
    if (Clock::now() < deadline) throw;
    return false;
  }
}

std::string joined(const std::vector<int>& ranks) {
  std::string text;
  for (int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

// Waits for the keys prefix + rank of all ranks but 0. Returns the ranks without a key, at most one unless `all`.
std::vector<int> missing_ranks(c10d::Store& store, const std::string& prefix, int size, bool all,
                               Clock::time_point deadline) {
  std::vector<int> missing;
  for (int rank = 1; rank < size; ++rank) {
    const std::string key = prefix + std::to_string(rank);
    // After the deadline the store is asked without a limit: it may answer late for ranks that have come.
    if ((Clock::now() < deadline && wait_for(store, key, deadline)) || store.check({key})) continue;
    missing.push_back(rank);
    if (!all) break;
  }
  return missing;
}

std::string barrier_prefix(uint64_t number) { return "monitored_barrier/" + std::to_string(number) + "/"; }

// Passes the current barrier of rank 0 as `rank`. `number`: the first barrier that this rank has not joined; increased.
// Returns false if rank 0 opens none before the deadline, or ends it with a failure.
bool pass_barrier(c10d::Store& store, int rank, std::atomic<uint64_t>& number, Clock::time_point deadline) {
  while (wait_for(store, barrier_prefix(number) + "open", deadline)) {
    const std::string prefix = barrier_prefix(number++);
    if (store.check({prefix + "failed"})) continue;  // It ended before this rank came.
    store.set(prefix + std::to_string(rank), std::string("here"));
    return wait_for(store, prefix + "end", deadline) && !store.check({prefix + "failed"});
  }
  return false;
}

}  // namespace

WorkPtr ProcessGroupTutti::barrier(const c10d::BarrierOptions& options) {
  // The barrier is in host memory. As NCCL's, it also waits for this rank's work on the GPU.
  const auto ready = device_calls_->record_current_stream();
  const auto body = [device_calls = device_calls_, ready](const CallContext& context) {
    if (ready != nullptr) {
      ready->synchronize();
      device_calls->synchronize();
    }
    uint8_t token = 0;
    check(tutti_all_reduce(&token, &token, 1, tutti_uint8, tutti_max, context.comm, nullptr));
  };
  return start(call_of(c10d::OpType::BARRIER, TUTTI_TITLE("barrier"), options), body);
}

// Synchronizes the ranks through the store, because a missing rank would make the communicator fail. Rank 0 numbers the
// barriers, so that all ranks agree on the number after one that some of them missed. Keys of barrier N:
//   N/open:          rank 0 has begun it
//   N/1, N/2, ...:   ranks that have reached it
//   N/failed, N/end: set in this order by rank 0; N/failed only if ranks were missing
void ProcessGroupTutti::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  communicator_->default_handle();  // Throws if the group has no members.
  TORCH_CHECK(store_, "monitored_barrier: a process group that was made by shrinking has no store; use barrier()");
  const Milliseconds timeout = timeout_or_default(options.timeout);
  const Clock::time_point deadline = Clock::now() + timeout;
  if (rank_ != 0) {
    TORCH_CHECK(pass_barrier(*store_, rank_, monitored_barriers_, deadline), "Rank ", rank_,
                " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
                "Please check rank 0 logs for faulty rank.");
    return;
  }
  TORCH_CHECK(timeout.count() > 0, "Rank 0 timed out in monitoredBarrier after 0 ms; pass a longer timeout");
  const std::string prefix = barrier_prefix(monitored_barriers_++);
  store_->set(prefix + "open", std::string("yes"));
  const std::vector<int> missing = missing_ranks(*store_, prefix, size_, wait_all_ranks, deadline);
  if (!missing.empty()) store_->set(prefix + "failed", std::string("yes"));
  store_->set(prefix + "end", std::string("yes"));
  if (missing.empty()) return;
  TORCH_CHECK(wait_all_ranks, "[Rank 0]: Rank ", joined(missing), " failed to pass monitoredBarrier in ",
              timeout.count(), " ms");
  TORCH_CHECK(false, "[Rank 0]: Ranks ", joined(missing), " failed to pass monitoredBarrier in ", timeout.count(),
              " ms");
}

}  // namespace tutti_torch
