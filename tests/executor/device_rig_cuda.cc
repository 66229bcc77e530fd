// The thread's current GPU as a rig.
#include <cuda_runtime.h>

#include <cstdlib>

#include "tests/executor/device_rig.h"

namespace tutti::test {
namespace {

cudaStream_t as_stream(DeviceStream stream) { return static_cast<cudaStream_t>(stream); }

Status check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return system_error(std::string(call) + ": " + cudaGetErrorString(error));
}

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(cudaGraphExec_t graph) : graph_(graph) {}
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  Status replay(DeviceStream stream) override { return check(cudaGraphLaunch(graph_, as_stream(stream)), "replay"); }

 private:
  cudaGraphExec_t graph_;
};

class CudaRig final : public DeviceRig {
 public:
  explicit CudaRig(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Device& device() override { return *device_; }
  DeviceStream make_stream() override {
    cudaStream_t stream = nullptr;
    TUTTI_ASSERT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    return stream;
  }
  void destroy_stream(DeviceStream stream) override { cudaStreamDestroy(as_stream(stream)); }
  Status synchronize(DeviceStream stream) override {
    return check(cudaStreamSynchronize(as_stream(stream)), "synchronize a stream");
  }
  Status begin_capture(DeviceStream stream) override {
    return check(cudaStreamBeginCapture(as_stream(stream), cudaStreamCaptureModeThreadLocal), "begin a capture");
  }
  Result<std::unique_ptr<DeviceGraph>> end_capture(DeviceStream stream) override {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    TUTTI_CHECK_OK(check(cudaStreamEndCapture(as_stream(stream), &graph), "end a capture"));
    Status made = check(cudaGraphInstantiate(&ready, graph, 0), "instantiate a graph");
    cudaGraphDestroy(graph);
    TUTTI_CHECK_OK(std::move(made));
    return std::unique_ptr<DeviceGraph>(std::make_unique<CudaGraph>(ready));
  }

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace

std::unique_ptr<DeviceRig> cuda_rig() {
  // Kernels that wait for each other in separate streams need as many queues. CUDA reads this variable when it starts.
  // Modules are loaded lazily, as in most programs.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  auto device = find_device();
  if (!device.ok()) return nullptr;
  return std::make_unique<CudaRig>(std::move(device).value());
}

}  // namespace tutti::test
