// Replaces perf/tool/gpu_backend.cc: the GPU emulator, whose memory is the host's.
#include "perf/tool/fail.h"
#include "perf/tool/memory_backend.h"
#include "tests/executor/current_host_device.h"

namespace perf {
namespace {

using tutti::DeviceStream;
using tutti::test::current_host_device;

void check(const tutti::Status& status) {
  if (!status.ok()) fail("the emulator of a GPU: %s", status.message().c_str());
}

class EmulatorBackend final : public MemoryBackend {
 public:
  EmulatorBackend() : stream_(current_host_device().make_stream()) {}
  ~EmulatorBackend() override { current_host_device().destroy_stream(stream_); }
  EmulatorBackend(const EmulatorBackend&) = delete;
  EmulatorBackend& operator=(const EmulatorBackend&) = delete;

  std::string memory() const override { return "cuda:0"; }
  std::string description() const override { return "device 0 emulator"; }
  tutti_stream stream() const override { return static_cast<tutti_stream>(stream_); }
  DeviceStream device_stream() const { return stream_; }

  void* allocate(std::size_t bytes) override { return current_host_device().allocate(bytes).value(); }
  void free(void* memory) override { current_host_device().free(static_cast<std::byte*>(memory)); }
  void synchronize() override { check(current_host_device().stream_of(stream_).synchronize()); }

 private:
  DeviceStream stream_;
};

class EmulatorReplay final : public Replay {
 public:
  EmulatorReplay(tutti::test::HostGraph graph, DeviceStream stream) : graph_(std::move(graph)), stream_(stream) {}
  void launch() override { check(graph_.replay(current_host_device().stream_of(stream_))); }

 private:
  tutti::test::HostGraph graph_;
  DeviceStream stream_;
};

DeviceStream stream_of(MemoryBackend* backend) { return static_cast<EmulatorBackend*>(backend)->device_stream(); }

void order(DeviceStream before, DeviceStream after) {
  auto event = current_host_device().make_event();
  check(event.value()->record(before));
  check(event.value()->hold(after));
}

}  // namespace

std::unique_ptr<MemoryBackend> gpu_backend(int, GpuAllocator) { return std::make_unique<EmulatorBackend>(); }

std::unique_ptr<Replay> capture(const std::vector<MemoryBackend*>& backends, const std::function<void()>& calls) {
  const DeviceStream first = stream_of(backends.front());
  check(current_host_device().stream_of(first).begin_capture(tutti::test::CaptureMode::thread_local_only));
  for (std::size_t i = 1; i < backends.size(); ++i) order(first, stream_of(backends[i]));
  calls();
  for (std::size_t i = 1; i < backends.size(); ++i) order(stream_of(backends[i]), first);
  auto graph = current_host_device().stream_of(first).end_capture();
  if (!graph.ok()) check(std::move(graph).status());
  return std::make_unique<EmulatorReplay>(std::move(graph).value(), first);
}

}  // namespace perf
