#include "src/communicator/device/enqueue.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/caught.h"
#include "src/communicator/call/forced.h"
#include "src/communicator/device/call_schedule.h"
#include "src/communicator/device/launch_sequence.h"
#include "src/communicator/device/time_sliced_launcher.h"
#include "src/communicator/peers/deferred_frees.h"

namespace tutti {
namespace {

// Calls of one device, at most kMaxCalls: collectives of one rank that run in order, or calls that run side by side.
class EnqueuedCalls {
 public:
  EnqueuedCalls(std::vector<const DeviceCall*> calls, bool in_order)
      : calls_(std::move(calls)), in_order_(in_order), stream_(stream_of(*calls_.front())) {}

  // Fails, before anything is enqueued, if the streams belong to different captures.
  Status check() const {
    const std::uint64_t capture = TUTTI_TRY(device().capture_of(stream()));
    for (const auto& [backend, caller] : callers()) {
      const std::uint64_t other = TUTTI_TRY(device().capture_of(caller));
      if (other != capture)
        return invalid_usage("the streams of a group are captured into different graphs, or not all of them are");
    }
    return {};
  }

  Status enqueue() {
    TUTTI_CHECK_OK(begin());
    if (in_order_) sequence_.emplace(calls_.front()->backend().rank(), calls_.front()->backend().ranks());
    const bool timed = !in_order_ && of_one_communicator();
    for (const DeviceCall* call : calls_)
      if (timed) TUTTI_CHECK_OK(call->backend().start_timing(call->call, stream()));
    for (const DeviceCall* call : calls_) {
      DeviceBackend& backend = call->backend();
      const DeviceJob job = TUTTI_TRY(is_message(call->call) ? backend.message(call->call, call->options)
                                                             : backend.collective(call->call, call->options));
      if (in_order_ && !sequence_->admits(call->call, job)) TUTTI_CHECK_OK(launch_sequence());
      if (job.copy_to != nullptr) TUTTI_CHECK_OK(device().copy(job.copy_to, job.copy_from, job.copy_bytes, stream()));
      if (job.residual.compression != CompressionFormat::none)
        TUTTI_CHECK_OK(device().apply_residual(job.residual, stream()));
      if (!job.launches) continue;
      if (in_order_) {
        sequence_->add(call->call, job);
        continue;
      }
      if (job.by_copy_engines) {
        TUTTI_CHECK_OK(run_by_copy_engines(job));
        continue;
      }
      if (backend.launcher() != nullptr) {
        time_sliced_[&backend].push_back(job);
        continue;
      }
      const PeerSet& peers = backend.peers();
      ProcessRanks& process = process_ranks_[{peers.hosts().id(), peers.process_group_id()}];
      process.jobs.push_back(job);
      process.ranks.insert(&backend);
      process.share = backend.peers().thread_blocks();
    }
    TUTTI_CHECK_OK(in_order_ ? launch_sequence() : launch_all());
    for (const DeviceCall* call : calls_)
      if (timed) TUTTI_CHECK_OK(call->backend().end_timing(stream()));
    return end();
  }

 private:
  // The ranks of one communicator that are driven by this thread.
  struct ProcessRanks {
    std::vector<DeviceJob> jobs;
    std::set<const DeviceBackend*> ranks;
    std::uint32_t share = 0;  // Thread blocks of each rank.
  };

  Device& device() const { return calls_.front()->backend().device(); }
  DeviceStream stream() const { return stream_; }

  // Copies between devices in the default stream may wait for all work of both devices, which may wait for this rank.
  static DeviceStream stream_of(const DeviceCall& call) {
    DeviceBackend& backend = call.backend();
    const bool moves = backend.device().is_default(call.stream) && backend.by_copy_engines(call.call, call.options);
    return moves ? backend.queue() : call.stream;
  }

  bool shares_device() const {
    return std::ranges::any_of(calls_, [](const DeviceCall* call) { return call->backend().peers().shares_device(); });
  }

  // True if only collectives of one communicator run here. The time of the launch is then the time of these calls.
  bool of_one_communicator() const {
    const std::uint64_t group_id = calls_.front()->backend().peers().process_group_id();
    return std::all_of(calls_.begin(), calls_.end(), [&](const DeviceCall* call) {
      return !is_message(call->call) && call->backend().peers().process_group_id() == group_id;
    });
  }

  // Pairs of backend and stream in which its calls were made.
  std::set<std::pair<DeviceBackend*, DeviceStream>> callers() const {
    std::set<std::pair<DeviceBackend*, DeviceStream>> all;
    for (const DeviceCall* call : calls_) all.emplace(&call->backend(), call->stream);
    return all;
  }

  Status begin() {
    std::set<const DeviceEvent*> held;
    for (const auto& [backend, caller] : callers()) {
      TUTTI_CHECK_OK(backend->begin(caller, stream()));
      const DeviceEvent* latest = backend->order().latest();
      if (latest != nullptr && held.insert(latest).second) TUTTI_CHECK_OK(backend->order().hold_for_latest(stream()));
    }
    return {};
  }

  // The launches await all ranks: first their inputs, then the ends of their copies.
  Status run_by_copy_engines(const DeviceJob& job) const {
    TUTTI_CHECK_OK(launch({job}));
    for (const DeviceCopy& copy : job.copies) TUTTI_CHECK_OK(device().copy(copy.to, copy.from, copy.bytes, stream()));
    TUTTI_CHECK_OK(launch({job}));
    return job.last.bytes == 0 ? Status() : device().copy(job.last.to, job.last.from, job.last.bytes, stream());
  }

  Status launch_sequence() {
    if (sequence_->empty()) return {};
    DeviceLaunch all = sequence_->take();
    all.shares_device = shares_device();
    return device().launch(all, stream());
  }

  // Time-sliced calls wait for each other: all are requested before one holds the stream.
  Status launch_all() {
    for (const auto& [backend, jobs] : time_sliced_) {
      const RequestKind kind = backend->order().is_captured() ? RequestKind::replayed : RequestKind::single;
      TUTTI_CHECK_OK(backend->launcher()->request(launch_of(jobs), kind, stream()));
    }
    TUTTI_CHECK_OK(launch());
    for (const auto& [backend, jobs] : time_sliced_) TUTTI_CHECK_OK(backend->launcher()->hold(stream()));
    return {};
  }

  // Launches all jobs at once if one kernel supports them and the ranks' shares of the device suffice for their calls
  // on all communicators. Otherwise launches each communicator separately, which always fits.
  Status launch() {
    std::vector<DeviceJob> all;
    std::uint32_t widest = 0;
    for (const auto& [number, process] : process_ranks_) {
      all.insert(all.end(), process.jobs.begin(), process.jobs.end());
      for (const DeviceJob& job : process.jobs) widest = std::max(widest, job.entry.channels);
    }
    std::size_t of_a_rank = 0;
    std::uint32_t share = ~0U;
    for (const auto& [number, process] : process_ranks_) {
      of_a_rank += (process.jobs.size() + process.ranks.size() - 1) / process.ranks.size();
      share = std::min(share, process.share);
    }
    if (process_ranks_.size() == 1 || (of_a_rank * widest <= share && alike(all))) return launch(all);
    for (const auto& [number, process] : process_ranks_) TUTTI_CHECK_OK(launch(process.jobs));
    return {};
  }

  // True if the jobs are all compressed or all uncompressed, as one kernel requires.
  static bool alike(const std::vector<DeviceJob>& jobs) {
    const auto compressed = [](const DeviceJob& job) {
      return job.entry.call.task.compression != CompressionFormat::none;
    };
    return std::all_of(jobs.begin(), jobs.end(), compressed) || std::none_of(jobs.begin(), jobs.end(), compressed);
  }

  Status launch(const std::vector<DeviceJob>& jobs) const {
    if (jobs.empty()) return {};
    if (!alike(jobs))
      return invalid_usage(
          std::string(
              "some ranks make a call whose messages are in a compression format, and others one whose are not: ranks "
              "of a communicator make the same calls, in the same format or under the same bound on the error (") +
          kCompressionIsSetBy + ")");
    return device().launch(launch_of(jobs), stream());
  }

  // A rank with a device of its own launches plainly, so that other kernels there do not hold up the whole launch.
  DeviceLaunch launch_of(const std::vector<DeviceJob>& jobs) const {
    DeviceLaunch all{.threads = 0};
    all.shares_device = shares_device();
    all.together = jobs.size() > 1 && all.shares_device;
    for (const DeviceJob& job : jobs) {
      all.batch.calls[all.count++] = job.entry;
      all.thread_block_bytes = std::max(all.thread_block_bytes, job.thread_block_bytes);
      all.threads = std::max(all.threads, job.threads);
    }
    return all;
  }

  Status end() {
    std::set<DeviceBackend*> members;
    for (const auto& [backend, caller] : callers()) members.insert(backend);
    TUTTI_CHECK_OK(DeviceBackend::end_together(members, stream()));
    for (const auto& [backend, caller] : callers()) TUTTI_CHECK_OK(backend->order().end(caller, stream()));
    return {};
  }

  std::vector<const DeviceCall*> calls_;
  const bool in_order_;
  DeviceStream stream_;
  std::optional<LaunchSequence> sequence_;  // While calls in order are enqueued.
  // By communicator: first by a number that its ranks in all processes share, so that separate launches have the same
  // order everywhere.
  std::map<std::pair<std::uint64_t, std::uint64_t>, ProcessRanks> process_ranks_;
  std::map<DeviceBackend*, std::vector<DeviceJob>> time_sliced_;
};

// caller: the calls can be corrected and retried.
enum class RefusalCause { caller, failure };

// Handles a refused group, none of whose calls runs. The refused call may be retried if its communicator has no other
// call in the group; other ranks have not published that call and may retry it, too. Peers of other communicators would
// wait for calls that are never made, so these communicators fail.
void refuse(std::span<const DeviceCall> calls, const DeviceCall& refused, const Status& reason, RefusalCause cause) {
  for (const DeviceCall& call : calls) call.backend().cancel_prepared();
  const std::uint64_t group_id = refused.backend().peers().process_group_id();
  std::map<const Communicator*, std::uint32_t> own;
  for (const DeviceCall& call : calls) ++own[call.communicator];
  for (const DeviceCall& call : calls) {
    const bool same = call.backend().peers().process_group_id() == group_id;
    if (same && own[call.communicator] == 1 && cause == RefusalCause::caller) continue;
    (void)call.communicator->call_off(reason);
  }
}

// Detects errors and allocates memory before any launch, because launched thread blocks may wait for other ranks.
Status prepare(std::span<const DeviceCall> calls) {
  std::map<const Communicator*, std::size_t> roundings;
  for (const DeviceCall& call : calls) {
    Status status = call.backend().has_failed() ? call.communicator->failure() : Status();
    if (status.ok()) status = call.backend().prepare(call.call, call.options, roundings[call.communicator]);
    if (status.ok()) continue;
    refuse(calls, call, status, is_rejected_call(status) ? RefusalCause::caller : RefusalCause::failure);
    return status;
  }
  return {};
}

Status start(std::span<const DeviceCall> calls) {
  const DeviceCallSchedule schedule(calls);
  Status possible = schedule.check();
  for (const DeviceCallSchedule::Group& group : schedule.groups()) {
    if (possible.ok()) possible = EnqueuedCalls(group.calls, group.in_order).check();
  }
  if (!possible.ok()) {
    // With any status code: the calls can be corrected and retried.
    refuse(calls, calls.front(), possible, RefusalCause::caller);
    return possible;
  }
  TUTTI_CHECK_OK(prepare(calls));
  const LaunchLock launching;
  for (const DeviceCallSchedule::Group& group : schedule.groups()) {
    Status status = EnqueuedCalls(group.calls, group.in_order).enqueue();
    if (status.ok()) continue;
    for (const DeviceCall& call : calls) (void)call.communicator->call_off(status);
    return status;
  }
  return {};
}

}  // namespace

Status enqueue(std::span<const DeviceCall> calls) {
  Status ended;
  Status thrown = caught([&]() -> Status {
    ended = start(calls);
    return {};
  });
  if (thrown.ok()) return ended;
  for (const DeviceCall& call : calls) (void)call.communicator->call_off(thrown);
  return thrown;
}

}  // namespace tutti
