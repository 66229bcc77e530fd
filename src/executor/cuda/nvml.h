// NVML queries about the interconnect between GPUs. The library is opened at run time if present.
#pragma once

#include <memory>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Thread-safe.
class Nvml {
 public:
  static Result<std::unique_ptr<Nvml>> open(const char* path = "libnvidia-ml.so.1");
  // The process-wide instance; null if NVML is not available.
  static const Nvml* of_process();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Unknown if NVML does not see one of the devices, as in a container that exposes only some.
  DeviceDistance distance(const DeviceIdentity& one, const DeviceIdentity& other) const;
  // Empty if the device is not registered in a domain of several hosts, or if the driver is too old (before R550).
  NvlinkDomain domain(const DeviceIdentity& device) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

}  // namespace tutti
