#include "src/communicator/device/device_backend.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/communicator/device/time_sliced_launcher.h"
#include "src/communicator/peers/deferred_frees.h"
#include "src/executor/numeric_reduce.h"

namespace tutti {
namespace {

// Reserved for lanes between ranks on one device, by writer and in total. Lanes for messages have 2 MiB, and those of
// LL and LL128 on all channels 3 MiB. Most calls with Simple access buffers directly; lanes for the others are
// allocated by the first such call.
constexpr std::size_t kLanesOnOneDevice = 5 << 20;
constexpr std::size_t kMaxOnOneDevice = 40 << 20;
constexpr std::size_t kMaxInProcess = 256 << 20;   // Lanes beyond this are allocated by the first calls that use them.
constexpr std::size_t kAutotunersBytes = 4 << 20;  // For images of candidates that autotuning tests.
constexpr std::int64_t kPollUs = 50;               // Interval of polls of a device.
constexpr std::int64_t kLookNs = 5'000'000;        // Interval at which a waiting thread looks for dead peers.

// Fails unless the call's buffers are aligned, as devices require.
Status check_alignment(const Call& call) {
  const std::size_t alignment = alignment_of(call.type);
  const auto input = reinterpret_cast<std::uintptr_t>(call.input);
  const auto output = reinterpret_cast<std::uintptr_t>(call.output);
  if (input % alignment == 0 && output % alignment == 0) return {};
  return invalid_argument(std::string(input % alignment != 0 ? "send" : "recv") + " is not aligned to " +
                          std::to_string(alignment) + " bytes, as " + name(call.type) + " needs it on a GPU");
}

Status check_reduction(const Call& call) {
  if (!reduces(call.collective) || thread_block_supports(call.type, call.reduction)) return {};
  return unsupported(std::string(name(call.reduction)) + " of " + name(call.type) +
                     " is not available on GPUs: use host memory, or sum or avg");
}

// Drops forced choices, which do not apply to messages.
CommunicatorOptions message_options(const CommunicatorOptions& options) {
  CommunicatorOptions plain;
  plain.timeout_ms = options.timeout_ms;
  return plain;
}

}  // namespace

// Prepares a communicator whose ranks have met. Reserves memory for lanes that peers in this process write, for address
// records and for the staging ring: CUDA maps new memory into the other devices, and may wait for kernels there that
// wait for this rank. Ranks on one device access buffers directly and use few lanes. No effect if the communicator is
// already prepared.
Status DeviceBackend::set_up_device() {
  if (reports_ != nullptr) return {};
  const std::size_t writers = peers_.writers_in_process();
  const std::size_t lanes = peers_.on_one_device() ? std::min(writers * kLanesOnOneDevice, kMaxOnOneDevice)
                                                   : std::min(writers * peers_.lanes().lanes_bytes(), kMaxInProcess);
  TUTTI_CHECK_OK(own_memory().reserve({.lanes = lanes,
                                       .ring = peers_.ring().bytes(),
                                       .own = preparer_.autotuning() != nullptr ? kAutotunersBytes : 0}));
  auto reports = TUTTI_TRY(KernelReports::make(own_memory().shared_device(), board(), rank()));
  preparer_.use(TUTTI_TRY(windows_.make_exchange(*reports)));
  reports_ = std::move(reports);
  jobs_.use(*reports_);
  TUTTI_CHECK_OK(monitor_.start(*reports_));
  if (peers_.time_sliced()) launcher_ = TUTTI_TRY(TimeSlicedLauncher::make(own_memory().shared_device(), *control_));
  source_ = std::make_unique<DeviceCallSource>([this] { return is_idle(); });
  return {};
}

// ---- Calls ----

bool DeviceBackend::only_copies(const Call& call) const {
  return call.kind == Kind::collective && ranks_ == 1 && call.reduction != Reduction::pre_mul_sum;
}

// Reuses memory of calls that are done.
void DeviceBackend::reclaim_memory() { own_memory().done_before(load_acquire(&reports_->progress().passed)); }

Status DeviceBackend::prepare(const Call& call, const CommunicatorOptions& options, std::size_t& roundings) {
  TUTTI_CHECK_OK(check_alignment(call));
  if (call.kind == Kind::collective) TUTTI_CHECK_OK(check_reduction(call));
  const bool message = call.kind != Kind::collective;
  if (only_copies(call) || (call.count == 0 && !message)) return {};
  if (message && call.root == rank_ && peers_.thread_blocks() == 1) {
    return unsupported("rank " + std::to_string(rank_) + " cannot send to itself: " + device().traits().name +
                       " has room for one thread block per rank; use fewer ranks per GPU");
  }
  TUTTI_CHECK_OK(set_up_device());
  if (launcher_ != nullptr) TUTTI_CHECK_OK(launcher_->start());
  if (queue_ == nullptr && by_copy_engines(call, options)) queue_ = TUTTI_TRY(device().make_queue());
  reclaim_memory();
  auto result = message ? calls_.prepare(call, message_options(options)) : calls_.prepare(call, options);
  const PreparedDeviceCall* prepared = TUTTI_TRY(std::move(result));
  return jobs_.provide(*prepared, options.compression_rounding, roundings);
}

Status DeviceBackend::announce(CallRecord& record, const Call& call) {
  windows_.add_to(record, call);
  control_->current.number(record);
  control_->membership.board.announce(rank_, record);
  control_->notifications.report_correction();
  monitor_.set_kind(call.kind);
  Status agreed = windows_.check(record);
  return agreed.ok() ? Status() : control_->failures.fail(std::move(agreed));
}

Result<DeviceJob> DeviceBackend::collective(const Call& call, const CommunicatorOptions& options) {
  if (call.count == 0 || only_copies(call)) {
    CallRecord record = record_of(call, options);
    TUTTI_CHECK_OK(announce(record, call));
    statistics_.record(RunStatistics::kNoMessages);
    DeviceJob job;
    if (call.count > 0 && call.input != call.output) job.copy_to = call.output;
    job.copy_from = call.input;
    job.copy_bytes = call.count * size_of(call.type);
    return job;
  }
  reclaim_memory();
  PreparedDeviceCall& prepared = *TUTTI_TRY(calls_.make(call, options));
  CallRecord record = prepared.record;
  TUTTI_CHECK_OK(announce(record, call));
  prepared.record.sequence = record.sequence;
  if (prepared.entry.call.task.compression != CompressionFormat::none) statistics_.add(prepared.carried);
  statistics_.record(prepared.runs.with(options.compression_rounding.rounding));
  return jobs_.job_of(prepared, call, options, signature_of(record));
}

Result<DeviceJob> DeviceBackend::message(const Call& call, const CommunicatorOptions& options) {
  reclaim_memory();
  PreparedDeviceCall* prepared = TUTTI_TRY(calls_.make(call, message_options(options)));
  monitor_.set_kind(call.kind);
  // The lane counts its messages, so the signature contains only size and type.
  const Signature signature = {mix(call.count * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(call.type))};
  return jobs_.job_of(*prepared, call, options, signature);
}

// ---- Streams ----

Status DeviceBackend::begin(DeviceStream callers, DeviceStream stream) {
  TUTTI_CHECK_OK(order_.begin(callers, stream));
  return monitor_.expect_calls(order_);
}

Status DeviceBackend::end_together(const std::set<DeviceBackend*>& members, DeviceStream stream) {
  std::vector<DeviceCallOrder*> orders;
  for (DeviceBackend* member : members) {
    TUTTI_CHECK_OK(member->monitor_.report_end(member->order_, stream));
    orders.push_back(&member->order_);
  }
  return DeviceCallOrder::end_together(orders, stream);
}

Status DeviceBackend::start_timing(const Call& call, DeviceStream stream) {
  DeviceAutotuning* const autotuning = preparer_.autotuning();
  return autotuning == nullptr || order_.is_captured() ? Status() : autotuning->start_timing(call, stream);
}

Status DeviceBackend::end_timing(DeviceStream stream) {
  DeviceAutotuning* const autotuning = preparer_.autotuning();
  return autotuning == nullptr ? Status() : autotuning->end_timing(stream);
}

// ---- Windows ----

Result<WindowHandle> DeviceBackend::register_window(const WindowBuffer& own) {
  TUTTI_CHECK_OK(failure());
  TUTTI_CHECK_OK(set_up_device());
  return windows_.register_buffer(own);
}

Status DeviceBackend::deregister_window(WindowHandle window) {
  TUTTI_CHECK_OK(await_own_calls());
  return windows_.deregister(window);
}

// ---- Shutdown ----

// Thread blocks end by themselves: when done, on request, or at their deadline.
Status DeviceBackend::await_own_calls() {
  for (std::int64_t looked_ns = now_ns(); !has_failed();) {
    const bool done = TUTTI_TRY(order_.is_idle());
    if (done) break;
    std::this_thread::sleep_for(std::chrono::microseconds(kPollUs));
    if (now_ns() - looked_ns < kLookNs) continue;
    if (!failure().ok()) break;  // Looks for dead peers, for which thread blocks may wait without limit.
    looked_ns = now_ns();
  }
  Status status = failure();  // Also notifies the peers, whose thread blocks then leave.
  if (!status.ok()) wait_for_remote_access();
  return status;
}

// After reporting that it leaves, a rank accesses no memory of its peers.
Status DeviceBackend::finish() {
  TUTTI_CHECK_OK(await_own_calls());
  monitor_.drain();
  if (preparer_.autotuning() != nullptr) preparer_.autotuning()->write();
  windows_.release_all();
  peers_.release_all();
  return {};
}

// A device that reports errors delays nothing.
bool DeviceBackend::is_idle() const {
  const Result<bool> done = order_.is_idle();
  return !done.ok() || (done.value() && (launcher_ == nullptr || launcher_->is_idle()));
}

// Waits for thread blocks of the peers, and for this rank's own, which other work in their stream may delay for long.
void DeviceBackend::wait_for_remote_access() {
  control_->failures.wait_for_remote_access();
  const Deadline wanted = Deadline::after_ms(kRemoteAccessMs);
  const Deadline deadline = board().failed() ? board().remote_access_deadline(wanted) : wanted;
  while (!deadline.passed()) {
    if (is_idle()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(kPollUs));
  }
}

}  // namespace tutti
