// Marks in a stream, as CUDA events.
#pragma once

#include <cuda_runtime.h>

#include "src/base/owned.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

class CudaEvent final : public DeviceEvent {
 public:
  // Owns the event. `device` describes its device and must outlive this object.
  CudaEvent(cudaEvent_t event, const DeviceTraits& device) : event_(event), device_(device) {}

  Status record(DeviceStream stream) override;
  Status hold(DeviceStream stream) override;
  Status record_in_replays(DeviceStream stream) override;
  Status hold_in_replays(DeviceStream stream) override;
  Result<bool> reached() override;
  // Elapsed nanoseconds until `later`, which must have been reached. Both events must record times.
  Result<std::int64_t> until_ns(const CudaEvent& later) const;

 private:
  Owned<cudaEvent_t, cudaEventDestroy> event_;
  const DeviceTraits& device_;
};

class CudaTimer final : public DeviceTimer {
 public:
  // `device` must outlive the timer.
  static Result<std::unique_ptr<DeviceTimer>> make(const DeviceTraits& device);

  Status begin(DeviceStream stream) override { return begin_.record(stream); }
  Status end(DeviceStream stream) override { return end_.record(stream); }
  Result<std::optional<std::int64_t>> took_ns() override;

 private:
  // Owns the events, which must record times.
  CudaTimer(cudaEvent_t begin, cudaEvent_t end, const DeviceTraits& device)
      : begin_(begin, device), end_(end, device) {}

  CudaEvent begin_, end_;
};

}  // namespace tutti
