#include "tests/ptx/runtime/machine_work.h"

#include "tests/ptx/runtime/kernel.h"

namespace tutti::cudart {
namespace {

cudaError_t error_of(ptx::FaultKind kind) {
  switch (kind) {
    case ptx::FaultKind::bounds:
    case ptx::FaultKind::use_after_free:
    case ptx::FaultKind::access_denied: return cudaErrorIllegalAddress;
    case ptx::FaultKind::alignment: return cudaErrorMisalignedAddress;
    case ptx::FaultKind::state_space: return cudaErrorInvalidAddressSpace;
    case ptx::FaultKind::trap:
    case ptx::FaultKind::mask:
    case ptx::FaultKind::barrier: return cudaErrorIllegalInstruction;
    case ptx::FaultKind::deadlock: return cudaErrorLaunchTimeout;
    default: return cudaErrorLaunchFailure;
  }
}

void fail(int device, cudaError_t error, const std::string& text) {
  report("device %d: %s: %s", device, runtime_name(error), text.c_str());
  const Lock lock(engine().mutex());
  DeviceState& state = device_state(device);
  if (state.fault == cudaSuccess) state.fault = error;
  engine().fail(device);
}

ptx::Machine& locked_machine() {
  const Lock lock(engine().mutex());
  return machine();
}

}  // namespace

bool MachineWork::advance() {
  if (started_) return has_ended();
  started_ = true;
  const Status status =
      start(locked_machine(), [ended = ended_, device = device_](const std::optional<ptx::Fault>& fault) {
        if (fault) fail(device, error_of(fault->kind), fault->text);
        ended->store(true, std::memory_order_release);
        engine().look_again();
      });
  if (status.ok()) return has_ended();
  fail(device_, cudaErrorLaunchFailure, status.message());
  return true;
}

}  // namespace tutti::cudart
