// Shutdown of a communicator on a device, and its windows.
#include <chrono>
#include <thread>

#include "src/communicator/device/device_communicator.h"
#include "src/communicator/device/turns.h"

namespace tutti {
namespace {

constexpr std::int64_t kAskUs = 50;  // Interval of polls of a device.

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
  TUTTI_CHECK_OK(set_up_device());
  return windows_.register_buffer(own);
}

Status DeviceCommunicator::deregister_window(WindowHandle window) {
  TUTTI_CHECK_OK(await_own_calls());
  return windows_.deregister(window);
}

// After reporting that it leaves, a rank accesses no memory of its peers.
Status DeviceCommunicator::finalize() {
  TUTTI_CHECK_OK(await_own_calls());
  monitor_.drain();
  if (autotuning_ != nullptr) autotuning_->write();
  windows_.release_all();
  peers_.release_all();
  return control_->finalize();
}

Status DeviceCommunicator::leave() {
  TUTTI_CHECK_OK(await_own_calls());
  monitor_.drain();
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

}  // namespace tutti
