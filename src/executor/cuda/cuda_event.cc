#include "src/executor/cuda/cuda_event.h"

#include "src/executor/cuda/calls.h"

namespace tutti {

Status CudaEvent::record(DeviceStream stream) {
  const OnDevice here(static_cast<int>(device_.ordinal));
  return cuda_status(cudaEventRecord(event_.get(), static_cast<cudaStream_t>(stream)), "cudaEventRecord", device_.name);
}

Status CudaEvent::hold(DeviceStream stream) {
  const OnDevice here(static_cast<int>(device_.ordinal));
  return cuda_status(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_.get(), 0), "cudaStreamWaitEvent",
                     device_.name);
}

Status CudaEvent::record_in_replays(DeviceStream stream) {
  const OnDevice here(static_cast<int>(device_.ordinal));
  return cuda_status(cudaEventRecordWithFlags(event_.get(), static_cast<cudaStream_t>(stream), cudaEventRecordExternal),
                     "cudaEventRecordWithFlags", device_.name);
}

Status CudaEvent::hold_in_replays(DeviceStream stream) {
  const OnDevice here(static_cast<int>(device_.ordinal));
  return cuda_status(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_.get(), cudaEventWaitExternal),
                     "cudaStreamWaitEvent", device_.name);
}

Result<bool> CudaEvent::reached() {
  const OnDevice here(static_cast<int>(device_.ordinal));
  const cudaError_t error = cudaEventQuery(event_.get());
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  TUTTI_CHECK_OK(cuda_status(error, "cudaEventQuery", device_.name));
  return true;
}

// Resolution: about half a microsecond.
Result<std::int64_t> CudaEvent::until_ns(const CudaEvent& later) const {
  const OnDevice here(static_cast<int>(device_.ordinal));
  float ms = 0;
  TUTTI_CHECK_OK(
      cuda_status(cudaEventElapsedTime(&ms, event_.get(), later.event_.get()), "cudaEventElapsedTime", device_.name));
  return static_cast<std::int64_t>(static_cast<double>(ms) * 1e6);
}

Result<std::unique_ptr<DeviceTimer>> CudaTimer::make(const DeviceTraits& device) {
  const OnDevice here(static_cast<int>(device.ordinal));
  cudaEvent_t begin = nullptr, end = nullptr;
  TUTTI_CHECK_OK(cuda_status(cudaEventCreate(&begin), "cudaEventCreate", device.name));
  Owned<cudaEvent_t, cudaEventDestroy> first(begin);
  TUTTI_CHECK_OK(cuda_status(cudaEventCreate(&end), "cudaEventCreate", device.name));
  return std::unique_ptr<DeviceTimer>(new CudaTimer(first.take(), end, device));
}

Result<std::optional<std::int64_t>> CudaTimer::took_ns() {
  const bool reached = TUTTI_TRY(end_.reached());
  if (!reached) return std::optional<std::int64_t>();
  return std::optional(TUTTI_TRY(begin_.until_ns(end_)));
}

}  // namespace tutti
