// Captures and graphs of the CUDA stand-in.
#include <atomic>
#include <thread>

#include "tests/ptx/runtime_gate.h"

namespace tutti::test {
namespace {

cudaError_t begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
  return cudaStreamBeginCapture(stream, mode);
}

// Ends a capture. Returns the error.
cudaError_t end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  EXPECT_EQ(graph == nullptr, error != cudaSuccess);
  if (graph != nullptr) cudaGraphDestroy(graph);
  return error;
}

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  return status;
}

class PtxCapture : public testing::Test {
 protected:
  void TearDown() override { cudaGetLastError(); }
  OwnedStream a_, b_;
  OwnedEvent event_;
};

TEST_F(PtxCapture, JoinsAndLeavesStreamsByEvents) {
  OwnedEvent join;
  ASSERT_EQ(begin(a_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, a_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b_, event_, 0), cudaSuccess);
  EXPECT_EQ(status_of(b_), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaEventRecord(join, b_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(a_, join, 0), cudaSuccess);
  EXPECT_EQ(end(b_), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(a_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(status_of(b_), cudaStreamCaptureStatusNone);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorCapturedEvent);
}

TEST_F(PtxCapture, RejectsEnd_BeforeForkedWorkIsJoined) {
  StreamHold word;
  ASSERT_EQ(begin(a_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, a_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b_, event_, 0), cudaSuccess);
  word.hold(b_);
  EXPECT_EQ(end(a_), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaStreamQuery(b_), cudaSuccess) << "the captured wait was executed";
}

TEST_F(PtxCapture, IsNeededForExternalEvents) {
  EXPECT_EQ(cudaEventRecordWithFlags(event_, a_, cudaEventRecordExternal), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamWaitEvent(a_, event_, cudaEventWaitExternal), cudaErrorInvalidValue);
}

TEST_F(PtxCapture, RejectsEventsOutsideOfIt) {
  EXPECT_EQ(cudaEventRecord(event_, b_), cudaSuccess);
  ASSERT_EQ(begin(a_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(a_, event_, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(status_of(a_), cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(end(a_), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(begin(a_), cudaSuccess);
  ASSERT_EQ(begin(b_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, b_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(a_, event_, 0), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(end(a_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(b_), cudaErrorStreamCaptureInvalidated);
}

TEST_F(PtxCapture, IsInvalidatedByWaits) {
  const auto device_wait = [](cudaStream_t) { return cudaDeviceSynchronize(); };
  const auto stream_wait = [](cudaStream_t stream) { return cudaStreamSynchronize(stream); };
  const auto query = [](cudaStream_t stream) { return cudaStreamQuery(stream); };
  for (cudaError_t (*wait)(cudaStream_t) : {+device_wait, +stream_wait, +query}) {
    ASSERT_EQ(begin(a_), cudaSuccess);
    EXPECT_EQ(wait(a_), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(end(a_), cudaErrorStreamCaptureInvalidated);
  }
}

TEST_F(PtxCapture, RejectsLegacyStreamBesideBlockingStream) {
  OwnedStream blocking(cudaStreamDefault);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(begin(nullptr), cudaErrorStreamCaptureUnsupported);
  ASSERT_EQ(begin(a_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, nullptr), cudaSuccess) << "the captured stream does not block";
  EXPECT_EQ(end(a_), cudaSuccess);
  ASSERT_EQ(begin(blocking), cudaSuccess);
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status_of(blocking), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaEventRecord(event_, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(end(blocking), cudaErrorStreamCaptureInvalidated);
}

// Unsafe calls, here cudaMalloc(), are forbidden by the mode of the capture and that of the thread.
TEST_F(PtxCapture, ForbidsUnsafeCallsByMode) {
  struct Case {
    cudaStreamCaptureMode capture, thread;
    bool other_thread, forbidden;
  };
  constexpr auto kGlobal = cudaStreamCaptureModeGlobal, kLocal = cudaStreamCaptureModeThreadLocal,
                 kRelaxed = cudaStreamCaptureModeRelaxed;
  for (const auto& [capture, mode, other, forbidden] :
       {Case{kGlobal, kGlobal, false, true}, Case{kGlobal, kLocal, false, true}, Case{kGlobal, kRelaxed, false, false},
        Case{kLocal, kGlobal, false, true}, Case{kRelaxed, kGlobal, false, false}, Case{kGlobal, kGlobal, true, true},
        Case{kGlobal, kLocal, true, false}, Case{kLocal, kGlobal, true, false}}) {
    ASSERT_EQ(begin(a_, capture), cudaSuccess);
    const auto allocate = [mode = mode] {
      cudaStreamCaptureMode swapped = mode;
      cudaThreadExchangeStreamCaptureMode(&swapped);
      void* memory = nullptr;
      const cudaError_t error = cudaMalloc(&memory, 4);
      cudaFree(memory);
      cudaThreadExchangeStreamCaptureMode(&swapped);
      return error;
    };
    cudaError_t error = cudaSuccess;
    if (other) {
      std::thread([&] { error = allocate(); }).join();
    } else {
      error = allocate();
    }
    EXPECT_EQ(error, forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess) << capture << mode << other;
    EXPECT_EQ(end(a_), forbidden ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
  }
}

TEST_F(PtxCapture, EndsInItsThreadUnlessRelaxed) {
  ASSERT_EQ(begin(a_), cudaSuccess);
  std::thread([&] { EXPECT_EQ(end(a_), cudaErrorStreamCaptureWrongThread); }).join();
  EXPECT_EQ(end(a_), cudaSuccess);
  ASSERT_EQ(begin(a_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  std::thread([&] { EXPECT_EQ(end(a_), cudaSuccess); }).join();
  EXPECT_EQ(end(a_), cudaErrorIllegalState);
}

// Branches of a graph run independently of each other, and launches of an instance one after the other.
TEST(PtxGraph, RunsBranchesConcurrentlyAndLaunchesInOrder) {
  OwnedStream a, b, other;
  OwnedEvent fork, join;
  std::uint32_t* words = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&words), 12), cudaSuccess);
  const auto address = [&](int i) { return reinterpret_cast<CUdeviceptr>(words + i); };
  auto* const wait = driver_function<decltype(cuStreamWaitValue32)>("cuStreamWaitValue32");
  auto* const write = driver_function<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32");
  ASSERT_EQ(begin(a), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(fork, a), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b, fork, 0), cudaSuccess);
  EXPECT_EQ(wait(a, address(0), 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);  // Written by the other branch.
  EXPECT_EQ(write(b, address(0), 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(wait(b, address(1), 1, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  EXPECT_EQ(cudaEventRecord(join, b), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(a, join, 0), cudaSuccess);
  EXPECT_EQ(write(a, address(0), 0, 0), CUDA_SUCCESS);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(a, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&instance, graph, 0), cudaSuccess);
  std::size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 4U);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  words[0] = words[1] = 0;
  EXPECT_EQ(cudaGraphLaunch(instance, a), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(a), cudaErrorNotReady);
  store_release(&words[1], 1U);
  EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  StreamHold gate;
  gate.hold(a);
  EXPECT_EQ(cudaGraphLaunch(instance, a), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(instance, other), cudaSuccess);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(cudaStreamQuery(other), cudaErrorNotReady) << "it did not wait for the first launch";
    std::this_thread::yield();
  }
  gate.open();
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(a), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(instance), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(words), cudaSuccess);
  cudaGetLastError();
}

// The event as of each launch counts, and each launch records its event again.
TEST(PtxGraph, WaitsForEventsAndRecordsThem_InEachLaunch) {
  OwnedStream stream, earlier, later;
  OwnedEvent before, after;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  ASSERT_EQ(begin(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, before, cudaEventWaitExternal), cudaSuccess);
  EXPECT_EQ(cudaEventRecordWithFlags(after, stream, cudaEventRecordExternal), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&instance, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(instance, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << "it waits for an event that was never recorded";
  for (int launch = 0; launch < 2; ++launch) {
    StreamHold gate;
    gate.hold(earlier);
    EXPECT_EQ(cudaEventRecord(before, earlier), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(instance, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(later, after, 0), cudaSuccess);
    for (int i = 0; i < 2000; ++i) {
      ASSERT_EQ(cudaEventQuery(after), cudaErrorNotReady);
      ASSERT_EQ(cudaStreamQuery(later), cudaErrorNotReady);
    }
    gate.open();
    EXPECT_EQ(cudaStreamSynchronize(later), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(after), cudaSuccess);
  }
  EXPECT_EQ(cudaGraphExecDestroy(instance), cudaSuccess);
  cudaGetLastError();
}

// Outside of captures, this copy would wait for the stream.
TEST(PtxGraph, CopiesWithinHostMemory) {
  OwnedStream stream;
  StreamHold gate;
  std::uint32_t* words = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&words), 8), cudaSuccess);
  words[0] = 0;
  words[1] = 5;
  ASSERT_EQ(begin(stream), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(words, words + 1, 4, cudaMemcpyDefault, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&instance, graph, 0), cudaSuccess);
  gate.hold(stream);
  EXPECT_EQ(cudaGraphLaunch(instance, stream), cudaSuccess);
  EXPECT_EQ(words[0], 0U);
  gate.open();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(words[0], 5U);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(instance), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(words), cudaSuccess);
}

TEST(PtxGraph, ReadsPageableMemoryWhenItExecutes) {
  OwnedStream stream;
  void* memory = nullptr;
  std::uint32_t sent = 7, received = 0;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  ASSERT_EQ(begin(stream), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(memory, &sent, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&instance, graph, 0), cudaSuccess);
  sent = 8;
  EXPECT_EQ(cudaGraphLaunch(instance, stream), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(&received, memory, 4, cudaMemcpyDefault, stream), cudaSuccess);
  EXPECT_EQ(received, 8U);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(instance), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(PtxGraph, ReleasesUserObjectsAfterLastLaunch) {
  OwnedStream stream;
  StreamHold gate;
  std::atomic<bool> released = false;
  cudaUserObject_t object = nullptr;
  cudaGraph_t graph = nullptr, ended = nullptr;
  cudaGraphExec_t instance = nullptr;
  cudaStreamCaptureStatus status;
  ASSERT_EQ(begin(stream), cudaSuccess);
  gate.hold(stream);
  ASSERT_EQ(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph), cudaSuccess);
  const auto release = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); };
  ASSERT_EQ(cudaUserObjectCreate(&object, &released, release, 1, cudaUserObjectNoDestructorSync), cudaSuccess);
  ASSERT_EQ(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &ended), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&instance, ended, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(ended), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(instance, stream), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(instance), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_FALSE(released);
  gate.open();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  while (!released) std::this_thread::yield();
  cudaGetLastError();
}

}  // namespace
}  // namespace tutti::test
