// Launches of kernels by the CUDA stand-in, and what waits for running kernels. Each test is a process of its own,
// since loaded kernels and faults remain.
#include "tests/ptx/runtime_kernels.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/bootstrap/processes.h"
#include "tests/ptx/runtime_gate.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kThreads = 64;

cudaError_t launch(const void* kernel, cudaStream_t stream, const void* argument = nullptr, unsigned blocks = 1) {
  void* arguments[] = {&argument};
  return cudaLaunchKernel(kernel, dim3(blocks), dim3(kThreads), arguments, 0, stream);
}

// Runs `body` in a child. It returns a failure or "".
std::string in_child(const Processes::Work& body) {
  Processes processes;
  processes.start(body);
  return processes.report(0);
}

// A kernel that runs on the current device until release().
class RunningKernel {
 public:
  RunningKernel() {
    cudaHostAlloc(reinterpret_cast<void**>(&word_), sizeof *word_, cudaHostAllocDefault);
    *word_ = 0;
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    launched_ = launch(spin_kernel(), stream_, word_);
  }
  bool ok() const { return launched_ == cudaSuccess; }
  bool runs() const { return cudaStreamQuery(stream_) == cudaErrorNotReady; }
  void release() {
    store_release(word_, 1U);
    cudaStreamSynchronize(stream_);
  }

 private:
  std::uint32_t* word_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaError_t launched_ = cudaSuccess;
};

// A stream that waits for a word until release(). No kernel runs.
class HeldStream {
 public:
  HeldStream() { hold_.hold(stream_); }
  bool runs() const { return cudaStreamQuery(stream_) == cudaErrorNotReady; }
  void release() {
    hold_.open();
    cudaStreamSynchronize(stream_);
  }

 private:
  StreamHold hold_;
  OwnedStream stream_;
};

// Returns "" if the call waits until the work, of a kernel or a stream, is released, or does not, as expected.
template <typename Work, typename Call>
std::string check_wait(Work& work, bool expected, Call&& call) {
  constexpr int kLooks = 2000;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::atomic<bool> returned = false;
  std::thread calling([&] {
    call();
    returned = true;
  });
  for (int i = 0; !returned && (expected ? i < kLooks : std::chrono::steady_clock::now() < end); ++i)
    std::this_thread::yield();
  const bool waits = !returned;
  const bool ran = work.runs();
  work.release();
  calling.join();
  if (!ran) return "the work ended early";
  return waits == expected ? "" : waits ? "the call waits" : "the call does not wait";
}

TEST(PtxKernels, StoreResults) {
  EXPECT_EQ(in_child([]() -> std::string {
              std::vector<std::uint32_t> found(3 * kThreads);
              void* memory = nullptr;
              cudaMalloc(&memory, found.size() * 4);
              if (launch(store_kernel(), nullptr, memory, 3) != cudaSuccess) return "cudaLaunchKernel";
              cudaMemcpy(found.data(), memory, found.size() * 4, cudaMemcpyDefault);
              for (std::uint32_t i = 0; i < found.size(); ++i) {
                if (found[i] != i + 1) return "word " + std::to_string(i) + " is " + std::to_string(found[i]);
              }
              return "";
            }),
            "");
}

TEST(PtxKernels, AreCheckedBeforeLaunch) {
  EXPECT_EQ(in_child([]() -> std::string {
              int limit = 0, blocks = 0;
              cudaDeviceGetAttribute(&limit, cudaDevAttrMultiProcessorCount, 0);
              const auto error = [](unsigned grid, unsigned block, std::size_t shared) {
                return cudaLaunchKernel(other_kernel(), dim3(grid), dim3(block), nullptr, shared, nullptr);
              };
              if (error(0, 32, 0) != cudaErrorInvalidConfiguration) return "an empty grid";
              if (error(1, 2048, 0) != cudaErrorInvalidConfiguration) return "a large thread block";
              if (error(1, 32, 60'000) != cudaErrorInvalidValue) return "much shared memory";
              constexpr auto kShared = cudaFuncAttributeMaxDynamicSharedMemorySize;
              if (cudaFuncSetAttribute(other_kernel(), kShared, 300'000) != cudaErrorInvalidValue) return "the limit";
              if (cudaFuncSetAttribute(other_kernel(), kShared, 60'000) != cudaSuccess) return "cudaFuncSetAttribute";
              if (error(1, 32, 60'000) != cudaSuccess) return "a launch with much shared memory";
              cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, other_kernel(), 1024, 0);
              const auto together = [&](int grid) {
                return cudaLaunchCooperativeKernel(other_kernel(), dim3(static_cast<unsigned>(grid)), dim3(1024),
                                                   nullptr, 0, nullptr);
              };
              if (blocks < 1 || together(blocks * limit) != cudaSuccess) return "a full device";
              if (together(blocks * limit + 1) != cudaErrorCooperativeLaunchTooLarge) return "too many thread blocks";
              if (launch(&limit, nullptr) != cudaErrorInvalidDeviceFunction) return "no kernel";
              return cudaDeviceSynchronize() == cudaSuccess ? "" : "cudaDeviceSynchronize";
            }),
            "");
}

cudaError_t launch_with(cudaLaunchAttributeID id, const cudaLaunchAttributeValue& value, unsigned blocks = 8) {
  cudaLaunchAttribute attribute = {};
  attribute.id = id;
  attribute.val = value;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, other_kernel(), nullptr);
}

cudaError_t launch_clusters(unsigned of_blocks, unsigned blocks) {
  cudaLaunchAttributeValue value = {};
  value.clusterDim.x = of_blocks;
  value.clusterDim.y = value.clusterDim.z = 1;
  return launch_with(cudaLaunchAttributeClusterDimension, value, blocks);
}

TEST(PtxKernels, AreLaunchedWithValidAttributesOnly) {
  const auto on = [](const char* capability) {
    return in_child([=]() -> std::string {
      ::setenv("TUTTI_PTX_CAPABILITY", capability, 1);
      const bool is_hopper = std::string(capability) == "90";
      cudaLaunchAttributeValue value = {};
      value.memSyncDomain = cudaLaunchMemSyncDomainRemote;
      if ((launch_with(cudaLaunchAttributeMemSyncDomain, value) == cudaSuccess) != is_hopper) return "a domain";
      if ((launch_clusters(4, 8) == cudaSuccess) != is_hopper) return "clusters";
      if (launch_clusters(4, 6) != cudaErrorInvalidClusterSize) return "a part of a cluster";
      if (launch_clusters(16, 16) != cudaErrorInvalidClusterSize) return "a large cluster";
      if (launch_clusters(0, 16) != cudaErrorInvalidClusterSize) return "an empty cluster";
      value = {};
      value.clusterSchedulingPolicyPreference = static_cast<cudaClusterSchedulingPolicy>(7);
      if (launch_with(cudaLaunchAttributeClusterSchedulingPolicyPreference, value) == cudaSuccess) return "a policy";
      if (launch_with(cudaLaunchAttributePreferredClusterDimension, {}) == cudaSuccess) return "an unknown attribute";
      return cudaDeviceSynchronize() == cudaSuccess ? "" : "cudaDeviceSynchronize";
    });
  };
  EXPECT_EQ(on("90"), "");
  EXPECT_EQ(on("80"), "");
}

TEST(PtxKernels, AreLoadedWhenNoKernelRuns) {
  for (const char* loading : {"LAZY", "EAGER"}) {
    const bool lazy = std::string(loading) == "LAZY";
    EXPECT_EQ(in_child([=]() -> std::string {
                ::setenv("CUDA_MODULE_LOADING", loading, 1);
                RunningKernel running;
                if (!running.ok()) return "cudaLaunchKernel";
                cudaStream_t stream = nullptr;
                cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
                return check_wait(running, lazy, [&] { launch(other_kernel(), stream); });
              }),
              "");
  }
}

// Launches kernels with local memory, by a graph or not.
template <typename Work>
std::string check_local_memory(bool by_graph) {
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  std::uint32_t* memory = nullptr;
  cudaMalloc(&memory, kThreads * 4);
  OwnedStream stream;
  const auto check = [&](const void* kernel, bool waits) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t instance = nullptr;
    if (by_graph) {
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      if (launch(kernel, stream, memory) != cudaSuccess) return std::string("a captured launch");
      cudaStreamEndCapture(stream, &graph);
      cudaGraphInstantiate(&instance, graph, 0);
    }
    cudaError_t error = cudaErrorUnknown;
    Work work;
    std::string failure = check_wait(
        work, waits, [&] { error = by_graph ? cudaGraphLaunch(instance, stream) : launch(kernel, stream, memory); });
    return error == cudaSuccess ? failure : cudaGetErrorName(error);
  };
  const std::pair<const void*, bool> steps[] = {{store_kernel(), false},
                                                {local_kernel(), true},
                                                {local_kernel(), false},
                                                {smaller_local_kernel(), true},
                                                {smaller_local_kernel(), false}};
  for (std::size_t i = 0; i < std::size(steps); ++i) {
    const std::string failure = check(steps[i].first, steps[i].second);
    if (!failure.empty()) return "launch " + std::to_string(i) + ": " + failure;
  }
  return cudaDeviceSynchronize() == cudaSuccess ? "" : "cudaDeviceSynchronize";
}

TEST(PtxKernels, WaitForAllStreams_IfTheyHaveLocalMemory) {
  for (const bool by_graph : {false, true}) {
    EXPECT_EQ(in_child([=] { return check_local_memory<RunningKernel>(by_graph); }), "") << "graph: " << by_graph;
    EXPECT_EQ(in_child([=] { return check_local_memory<HeldStream>(by_graph); }), "") << "graph: " << by_graph;
  }
}

// NVIDIA/nccl issue 787.
TEST(PtxKernels, DelayAllocationOnPeers) {
  for (const bool peers : {false, true}) {
    EXPECT_EQ(in_child([=]() -> std::string {
                ::setenv("TUTTI_PTX_DEVICES", "2", 1);
                if (peers && cudaDeviceEnablePeerAccess(1, 0) != cudaSuccess) return "cudaDeviceEnablePeerAccess";
                RunningKernel running;
                return check_wait(running, peers, [] {
                  void* memory = nullptr;
                  cudaSetDevice(1);
                  cudaMalloc(&memory, 100);
                });
              }),
              "");
  }
}

TEST(PtxKernels, FaultWithoutPeerAccess) {
  EXPECT_EQ(in_child([]() -> std::string {
              ::setenv("TUTTI_PTX_DEVICES", "2", 1);
              void* memory = nullptr;
              cudaSetDevice(1);
              cudaMalloc(&memory, kThreads * 4);
              cudaSetDevice(0);
              cudaDeviceEnablePeerAccess(1, 0);
              launch(store_kernel(), nullptr, memory);
              if (cudaDeviceSynchronize() != cudaSuccess) return "with peer access";
              cudaDeviceDisablePeerAccess(1);
              launch(store_kernel(), nullptr, memory);
              if (cudaDeviceSynchronize() != cudaErrorIllegalAddress) return "without peer access";
              if (cudaMalloc(&memory, 4) != cudaErrorIllegalAddress) return "the error is not sticky";
              cudaSetDevice(1);
              return cudaMalloc(&memory, 4) == cudaSuccess ? "" : "the other device";
            }),
            "");
}

TEST(PtxKernels, AccessPageableMemory_IfNodeSupportsIt) {
  for (const char* pageable : {"0", "1"}) {
    const cudaError_t expected = *pageable == '1' ? cudaSuccess : cudaErrorIllegalAddress;
    EXPECT_EQ(in_child([=]() -> std::string {
                ::setenv("TUTTI_PTX_PAGEABLE", pageable, 1);
                std::uint32_t on_stack[kThreads] = {};
                std::vector<std::uint32_t> on_heap(kThreads), registered(kThreads);
                cudaHostRegister(registered.data(), kThreads * 4, cudaHostRegisterDefault);
                for (std::uint32_t* memory : {registered.data(), on_stack, on_heap.data()}) {
                  launch(store_kernel(), nullptr, memory);
                  const cudaError_t error = cudaDeviceSynchronize();
                  if (memory == registered.data() && error != cudaSuccess) return "registered memory";
                  if (memory != registered.data() && error != expected) return cudaGetErrorName(error);
                  if (error == cudaSuccess && memory[kThreads - 1] != kThreads) return "a wrong result";
                }
                return "";
              }),
              "");
  }
}

}  // namespace
}  // namespace tutti::test
