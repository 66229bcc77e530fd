// A mark in a stream, by a CUDA event.
#pragma once

#include <cuda_runtime.h>

#include "src/base/owned.h"
#include "src/executor/team/device.h"

namespace tutti {

class CudaEvent final : public DeviceEvent {
 public:
  // `device`: its device's; outlives it. Owns the event.
  CudaEvent(cudaEvent_t event, const DeviceTraits& device) : event_(event), device_(device) {}

  Status record(DeviceStream stream) override;
  Status hold(DeviceStream stream) override;
  Result<bool> reached() override;

 private:
  Owned<cudaEvent_t, cudaEventDestroy> event_;
  const DeviceTraits& device_;
};

}  // namespace tutti
