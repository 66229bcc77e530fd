// GPU memory, and one stream per rank.
#include <cuda_runtime.h>

#include <cstdlib>

#include "perf/tool/fail.h"
#include "perf/tool/gpu_check.h"
#include "perf/tool/gpu_pattern.h"
#include "perf/tool/memory_backend.h"

namespace perf {
namespace {

int count_gpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    fail("--memory cuda: no GPU is available to this process (%s); see nvidia-smi and CUDA_VISIBLE_DEVICES",
         cudaGetErrorName(error));
  }
  return count;
}

class GpuBackend final : public MemoryBackend {
 public:
  GpuBackend(int rank, GpuAllocator allocator) : allocator_(allocator) {
    // Ranks that share a GPU wait for each other in streams, which must not share a hardware queue. No kernel may be
    // loaded meanwhile. CUDA reads both variables when it starts.
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    device_ = rank % count_gpus();
    select();
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    pattern_ = std::make_unique<GpuPattern>(stream_);
  }
  ~GpuBackend() override { cudaStreamDestroy(stream_); }
  GpuBackend(const GpuBackend&) = delete;
  GpuBackend& operator=(const GpuBackend&) = delete;

  std::string memory() const override { return "cuda:" + std::to_string(device_); }
  std::string description() const override {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
    return "device " + std::to_string(device_) + " " + properties.name;
  }
  tutti_stream stream() const override { return reinterpret_cast<tutti_stream>(stream_); }
  cudaStream_t cuda_stream() const { return stream_; }

  void* allocate(std::size_t bytes) override {
    select();
    void* memory = nullptr;
    const bool allocated = allocator_ == GpuAllocator::tutti ? tutti_mem_alloc_cuda(&memory, bytes) == tutti_ok
                                                             : cudaMalloc(&memory, bytes) == cudaSuccess;
    if (!allocated) fail("no memory for a buffer of %zu bytes on device %d: give a smaller --maxbytes", bytes, device_);
    check(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync");
    synchronize();
    return memory;
  }
  void free(void* memory) override {
    select();
    if (allocator_ == GpuAllocator::tutti) return require(tutti_mem_free(memory), "tutti_mem_free");
    check(cudaFree(memory), "cudaFree");
  }

  void poison(void* memory, std::size_t bytes) override {
    select();
    check(cudaMemsetAsync(memory, kPoison, bytes, stream_), "cudaMemsetAsync");
    synchronize();
  }
  void fill(void* memory, const Pattern& pattern, int rank, std::size_t count) override {
    select();
    pattern_->fill(memory, pattern, rank, count);
  }
  std::uint64_t wrong(const void* memory, const Pattern& pattern, const Output& output) override {
    select();
    return pattern_->wrong(memory, pattern, output);
  }
  void put(void* memory, const void* from, std::size_t bytes) override {
    select();
    check(cudaMemcpyAsync(memory, from, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
    synchronize();
  }
  void get(const void* memory, void* to, std::size_t bytes) override {
    select();
    check(cudaMemcpyAsync(to, memory, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    synchronize();
  }

  void synchronize() override { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  void select() const { check(cudaSetDevice(device_), "cudaSetDevice"); }

  const GpuAllocator allocator_;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<GpuPattern> pattern_;
};

class GpuReplay final : public Replay {
 public:
  GpuReplay(cudaGraphExec_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {}
  ~GpuReplay() override { cudaGraphExecDestroy(graph_); }
  GpuReplay(const GpuReplay&) = delete;
  GpuReplay& operator=(const GpuReplay&) = delete;
  void launch() override { check(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t graph_;
  cudaStream_t stream_;
};

cudaStream_t stream_of(MemoryBackend* backend) { return static_cast<GpuBackend*>(backend)->cuda_stream(); }

// Makes later work in `after` wait for the current work in `before`.
void order(cudaStream_t before, cudaStream_t after) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check(cudaEventRecord(event, before), "cudaEventRecord");
  check(cudaStreamWaitEvent(after, event, 0), "cudaStreamWaitEvent");
  check(cudaEventDestroy(event), "cudaEventDestroy");
}

}  // namespace

std::unique_ptr<MemoryBackend> gpu_backend(int rank, GpuAllocator allocator) {
  return std::make_unique<GpuBackend>(rank, allocator);
}

// Captures one graph for all ranks of the thread: their streams fork from the first stream and join it again.
std::unique_ptr<Replay> capture(const std::vector<MemoryBackend*>& backends, const std::function<void()>& calls) {
  cudaStream_t first = stream_of(backends.front());
  check(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (std::size_t i = 1; i < backends.size(); ++i) order(first, stream_of(backends[i]));
  calls();
  for (std::size_t i = 1; i < backends.size(); ++i) order(stream_of(backends[i]), first);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaStreamEndCapture(first, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return std::make_unique<GpuReplay>(ready, first);
}

}  // namespace perf
