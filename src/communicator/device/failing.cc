// Failure detection and shutdown of a communicator on a device.
#include <algorithm>
#include <chrono>
#include <thread>

#include "src/base/atomic.h"
#include "src/communicator/device/device_communicator.h"
#include "src/communicator/device/turns.h"

namespace tutti {
namespace {

constexpr std::int64_t kAskUs = 50;  // Interval of polls of a device.
constexpr const char* kNothingReceived = " has not reported it, and may be late, stopped or in another call";

}  // namespace

// Thread blocks end by themselves: when done, on request, or at their deadline.
Status DeviceCommunicator::await_own_calls() {
  while (!has_failed()) {
    const bool done = TUTTI_TRY(order_.is_idle());
    if (done) break;
    std::this_thread::sleep_for(std::chrono::microseconds(kAskUs));
  }
  Status status = failure();  // Also notifies the peers, whose thread blocks then leave.
  if (!status.ok()) wait_for_remote_access();
  return status;
}

Result<WindowHandle> DeviceCommunicator::register_window(const WindowBuffer& own) {
  TUTTI_CHECK_OK(failure());
  TUTTI_CHECK_OK(settle());
  return windows_.register_buffer(own);
}

Status DeviceCommunicator::deregister_window(WindowHandle window) {
  TUTTI_CHECK_OK(await_own_calls());
  return windows_.deregister(window);
}

// After reporting that it leaves, a rank accesses no memory of its peers.
Status DeviceCommunicator::finalize() {
  TUTTI_CHECK_OK(await_own_calls());
  if (proxy_ != nullptr) drain();
  if (autotuning_ != nullptr) autotuning_->write();
  windows_.release_all();
  peers_.release_all();
  return control_->finalize();
}

Status DeviceCommunicator::leave() {
  TUTTI_CHECK_OK(await_own_calls());
  if (proxy_ != nullptr) drain();
  if (autotuning_ != nullptr) autotuning_->write();
  windows_.release_all();
  peers_.release_all();
  return control_->leave();
}

// Waits for thread blocks of the peers, and for this rank's own, which other work in their stream may delay for long.
void DeviceCommunicator::wait_for_remote_access() {
  control_->wait_for_remote_access();
  const Deadline wanted = Deadline::after_ms(kRemoteAccessMs);
  const Deadline deadline = board().failed() ? board().remote_access_deadline(wanted) : wanted;
  while (!deadline.passed()) {
    const Result<bool> done = order_.is_idle();
    if (!done.ok() || (done.value() && (turns_ == nullptr || turns_->quiet()))) return;
    std::this_thread::sleep_for(std::chrono::microseconds(kAskUs));
  }
}

bool DeviceCommunicator::has_failed() const {
  return board().failed() || (settled_ && load_acquire(&reported().report.written) != 0);
}

// Thread blocks of different calls may wait for each other until their deadline. Comparing the calls detects this
// earlier.
Status DeviceCommunicator::compare_calls() const {
  const std::uint64_t own = board().last(rank_);
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const std::uint64_t last = std::min(own, board().last(peer));
    for (std::uint64_t sequence = last; sequence > 0 && sequence + kCallHistory > last; --sequence) {
      const auto ours = board().call(rank_, sequence);
      const auto theirs = board().call(peer, sequence);
      if (ours && theirs && ours->signature != theirs->signature)
        return disagreement(options().name, {rank_, *ours}, {peer, *theirs});
    }
  }
  return {};
}

Status DeviceCommunicator::failure() {
  if (!board().failed() && has_failed()) return control_->fail(explain(reported().report));
  if (!board().failed()) {
    Status differ = compare_calls();
    if (!differ.ok()) return control_->fail(std::move(differ));
  }
  return settled_ && peers_.network() ? control_->failure(latest_call()) : control_->failure();
}

// Describes the failed call. The latest calls of this rank are still on the board.
Status DeviceCommunicator::explain(const KernelReport& report) {
  const std::uint64_t last = board().last(rank_);
  std::string call = "a message or an earlier call";
  for (std::uint64_t sequence = last; sequence > 0 && sequence + kCallHistory > last; --sequence) {
    const auto ours = board().call(rank_, sequence);
    if (!ours || signature_of(*ours).word != report.signature) continue;
    call = describe(*ours) + " #" + std::to_string(sequence);
    const bool is_remote = board().is_remote(report.peer);
    if (is_remote && report.mismatch != 0) TUTTI_CHECK_OK(receive_call(report.peer, sequence));
    const auto theirs = board().call(report.peer, sequence);
    if (theirs && theirs->signature != ours->signature)
      return disagreement(options().name, {rank_, *ours}, {report.peer, *theirs});
    if (theirs) TUTTI_CHECK_OK(windows_.compare(*ours, report.peer, *theirs));
    if (board().last(report.peer) < sequence)
      call += "; rank " + std::to_string(report.peer) + (is_remote ? kNothingReceived : " has not called it");
    break;
  }
  if (!options().name.empty()) call += " on " + options().name;
  const std::string where =
      " (channel " + std::to_string(report.channel) + ", step " + std::to_string(report.step) + ")";
  if (report.mismatch != 0) {
    return invalid_usage("rank " + std::to_string(rank_) + " is in " + call + where + ", and what rank " +
                         std::to_string(report.peer) + " sent belongs to another call");
  }
  return timeout_error("rank " + std::to_string(rank_) + " waited too long for rank " + std::to_string(report.peer) +
                       (report.sends != 0 ? " to make room" : "") + " in " + call + where + by_network(report.peer));
}

}  // namespace tutti
