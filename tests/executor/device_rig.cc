#include "tests/executor/device_rig.h"

#include <sys/mman.h>

namespace tutti::test {
namespace {

class HostDeviceGraph final : public DeviceGraph {
 public:
  HostDeviceGraph(HostDevice& device, HostGraph graph) : device_(device), graph_(std::move(graph)) {}
  Status replay(DeviceStream stream) override { return graph_.replay(device_.stream_of(stream)); }

 private:
  HostDevice& device_;
  HostGraph graph_;
};

class HostRig final : public DeviceRig {
 public:
  explicit HostRig(const HostDeviceOptions& options) : device_(options) {}
  Device& device() override { return device_; }
  DeviceStream make_stream() override { return device_.make_stream(); }
  void destroy_stream(DeviceStream stream) override { device_.destroy_stream(stream); }
  Status synchronize(DeviceStream stream) override { return device_.stream_of(stream).synchronize(); }
  Status begin_capture(DeviceStream stream) override {
    return device_.stream_of(stream).begin_capture(CaptureMode::global);
  }
  Result<std::unique_ptr<DeviceGraph>> end_capture(DeviceStream stream) override {
    return std::unique_ptr<DeviceGraph>(
        std::make_unique<HostDeviceGraph>(device_, TUTTI_TRY(device_.stream_of(stream).end_capture())));
  }

 private:
  HostDevice device_;
};

}  // namespace

std::unique_ptr<DeviceRig> host_rig(const HostDeviceOptions& options) { return std::make_unique<HostRig>(options); }

std::vector<DeviceKind> device_kinds() {
  return {{"host", [] { return host_rig({.shares_by_file = true}); }}, {"cuda", cuda_rig}};
}

std::vector<DeviceKind> shared_device_kinds() {
  std::vector<DeviceKind> kinds = device_kinds();
  static const int launch_lock = ::memfd_create("tutti-launch-lock", MFD_CLOEXEC);
  kinds.push_back(
      {"host_time_sliced", [] { return host_rig({.sharing = ComputeSharing::none, .launch_lock = launch_lock}); }});
  return kinds;
}

}  // namespace tutti::test
