// A device with streams and graphs for tests.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <vector>

#include "tests/executor/host_device.h"

namespace tutti::test {

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual Status replay(DeviceStream stream) = 0;
};

class DeviceRig {
 public:
  virtual ~DeviceRig() = default;
  virtual Device& device() = 0;
  virtual DeviceStream make_stream() = 0;
  virtual void destroy_stream(DeviceStream stream) = 0;
  virtual Status synchronize(DeviceStream stream) = 0;
  virtual Status begin_capture(DeviceStream stream) = 0;
  virtual Result<std::unique_ptr<DeviceGraph>> end_capture(DeviceStream stream) = 0;
};

std::unique_ptr<DeviceRig> host_rig(const HostDeviceOptions& options = {});

struct DeviceKind {
  const char* name;
  std::function<std::unique_ptr<DeviceRig>()> make;
};
inline void PrintTo(const DeviceKind& kind, std::ostream* out) { *out << kind.name; }

// Returns the thread's current GPU, or null if there is none.
std::unique_ptr<DeviceRig> cuda_rig();

// Returns the GPU emulator and a GPU.
std::vector<DeviceKind> device_kinds();
// Returns device_kinds(), and an emulator that runs only one launch of all processes at a time.
std::vector<DeviceKind> shared_device_kinds();

}  // namespace tutti::test
