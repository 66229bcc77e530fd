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

}  // namespace tutti
