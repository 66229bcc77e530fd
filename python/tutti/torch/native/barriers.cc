#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

using Clock = std::chrono::steady_clock;

Milliseconds until(Clock::time_point deadline) {
  return std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()));
}

std::string joined(const std::vector<int>& ranks) {
  std::string text;
  for (int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

// Waits for the keys prefix + rank of all ranks but `own`. Returns the ranks without a key, at most one unless `all`.
std::vector<int> missing_ranks(c10d::Store& store, const std::string& prefix, int size, bool all,
                               Clock::time_point deadline) {
  std::vector<int> missing;
  for (int rank = 1; rank < size; ++rank) {
    try {
      store.wait({prefix + std::to_string(rank)}, until(deadline));
    } catch (const std::exception&) {
      missing.push_back(rank);
      if (!all) break;
    }
  }
  return missing;
}

}  // namespace

WorkPtr ProcessGroupTutti::barrier(const c10d::BarrierOptions& options) {
  return start(call_of(c10d::OpType::BARRIER, TUTTI_TITLE("barrier"), options), [](tutti_comm comm) {
    uint8_t token = 0;
    check(tutti_all_reduce(&token, &token, 1, tutti_uint8, tutti_max, comm, nullptr));
  });
}

// Synchronizes the ranks through the store, because a missing rank would make the communicator fail.
void ProcessGroupTutti::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  TORCH_CHECK(store_, "monitored_barrier: a process group that was made by shrinking has no store; use barrier()");
  const Milliseconds timeout = timeout_or_default(options.timeout);
  const Clock::time_point deadline = Clock::now() + timeout;
  const std::string prefix = "monitored_barrier/" + std::to_string(monitored_barriers_++) + "/";
  if (rank_ != 0) {
    store_->set(prefix + std::to_string(rank_), std::string("here"));
    try {
      store_->wait({prefix + "done"}, until(deadline));
    } catch (const std::exception&) {
      TORCH_CHECK(false, "Rank ", rank_, " successfully reached monitoredBarrier, but received errors while waiting ",
                  "for send/recv from rank 0. Please check rank 0 logs for faulty rank.");
    }
    return;
  }
  TORCH_CHECK(timeout.count() > 0, "Rank 0 timed out in monitoredBarrier after 0 ms; pass a longer timeout");
  const std::vector<int> missing = missing_ranks(*store_, prefix, size_, wait_all_ranks, deadline);
  if (missing.empty()) return store_->set(prefix + "done", std::string("done"));
  TORCH_CHECK(wait_all_ranks, "[Rank 0]: Rank ", joined(missing), " failed to pass monitoredBarrier in ",
              timeout.count(), " ms");
  TORCH_CHECK(false, "[Rank 0]: Ranks ", joined(missing), " failed to pass monitoredBarrier in ", timeout.count(),
              " ms");
}

}  // namespace tutti_torch
