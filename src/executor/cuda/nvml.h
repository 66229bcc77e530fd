// How GPUs of a host are connected, by NVIDIA's management library, which is opened at run time if it is there.
#pragma once

#include <memory>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Any thread.
class Nvml {
 public:
  static Result<std::unique_ptr<Nvml>> open(const char* path = "libnvidia-ml.so.1");
  // The process's; null: there is none.
  static const Nvml* of_process();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Not known where the library does not know one of the devices, as in a container that shows only some.
  DeviceDistance distance(const DeviceIdentity& one, const DeviceIdentity& other) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

}  // namespace tutti
