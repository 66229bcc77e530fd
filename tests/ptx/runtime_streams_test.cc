// Streams and events of the CUDA stand-in.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/ptx/runtime_gate.h"

namespace tutti::test {
namespace {

cudaError_t finish(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

TEST(PtxStreams, RunsWorkInOrder) {
  StreamHold gate;
  OwnedStream stream;
  OwnedEvent before, after;
  EXPECT_EQ(cudaEventRecord(before, stream), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(before), cudaSuccess);
  gate.hold(stream);
  EXPECT_EQ(cudaEventRecord(after, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(after), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, before, after), cudaErrorNotReady);
  gate.open();
  EXPECT_EQ(finish(stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(after), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, before, after), cudaSuccess);
  EXPECT_GT(ms, 0);
  cudaGetLastError();
}

TEST(PtxStreams, WaitsForMarkAsRecordedAtCall) {
  StreamHold first, second;
  OwnedStream a, b, c;
  OwnedEvent event, end;
  first.hold(a);
  second.hold(b);
  EXPECT_EQ(cudaEventRecord(event, a), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(c, event, 0), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, b), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, c), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  first.open();
  EXPECT_EQ(finish(c), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  second.open();
  EXPECT_EQ(finish(b), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  cudaGetLastError();
}

TEST(PtxStreams, LegacyStreamWaitsForBlockingStreamsOnly) {
  StreamHold gate;
  OwnedStream free, blocking(cudaStreamDefault);
  OwnedEvent end, later;
  gate.hold(free);
  EXPECT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  gate.hold(blocking);
  EXPECT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(later, blocking), cudaSuccess);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(cudaEventQuery(end), cudaErrorNotReady) << "it did not wait for the blocking stream";
    std::this_thread::yield();
  }
  gate.open();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(later), cudaSuccess);
  cudaGetLastError();
}

TEST(PtxStreams, ShareHardwareQueues) {
  StreamHold gate;
  cudaStream_t streams[9];  // One more than there are queues.
  OwnedEvent other, same;
  for (cudaStream_t& stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gate.hold(streams[0]);
  EXPECT_EQ(cudaEventRecord(same, streams[8]), cudaSuccess);
  for (int i = 1; i < 8; ++i) {
    EXPECT_EQ(cudaEventRecord(other, streams[i]), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(other), cudaSuccess);
  }
  EXPECT_EQ(cudaEventQuery(same), cudaErrorNotReady);
  gate.open();
  EXPECT_EQ(cudaEventSynchronize(same), cudaSuccess);
  for (cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  cudaGetLastError();
}

TEST(PtxStreams, RejectsUnknownHandles) {
  OwnedEvent silent(cudaEventDisableTiming), timed;
  const auto unknown = reinterpret_cast<cudaStream_t>(0x1234);
  float ms = 0;
  EXPECT_EQ(cudaStreamSynchronize(unknown), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(timed, unknown), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&ms, silent, timed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(PtxStreams, SynchronizesCopiesOfPageableMemory) {
  StreamHold gate;
  OwnedStream stream;
  std::uint32_t *pinned = nullptr, pageable = 7;
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 4), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  *pinned = 5;
  gate.hold(stream);
  EXPECT_EQ(cudaMemcpyAsync(memory, pinned, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);  // Returns at once.
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  gate.open();
  EXPECT_EQ(cudaMemcpyAsync(&pageable, memory, 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(pageable, 5U);
  EXPECT_EQ(cudaMemcpy(memory, memory, 8, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue) << "beyond the end";
  EXPECT_EQ(cudaMemcpy(&pageable, pinned, 4, cudaMemcpyDeviceToHost), cudaSuccess) << "pinned memory has both kinds";
  EXPECT_EQ(cudaMemcpy(memory, memory, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  cudaGetLastError();
}

// Calls `copy` while the stream waits, and expects that it returns after the stream has been released.
void expect_wait_for(cudaStream_t stream, const std::function<cudaError_t()>& copy) {
  StreamHold gate;
  std::atomic<bool> calls = false, opens = false;
  gate.hold(stream);
  std::thread copying([&] {
    calls = true;
    EXPECT_EQ(copy(), cudaSuccess);
    EXPECT_TRUE(opens) << "it did not wait for the stream";
  });
  while (!calls) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) std::this_thread::yield();
  opens = true;
  gate.open();
  copying.join();
}

// Pinned memory on both sides.
TEST(PtxStreams, SynchronizesCopiesWithinHostMemory) {
  OwnedStream stream;
  std::vector<std::uint32_t> registered(1024);
  std::uint32_t* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 4), cudaSuccess);
  ASSERT_EQ(cudaHostRegister(registered.data(), 4096, cudaHostRegisterMapped), cudaSuccess);
  *pinned = 0;
  for (const cudaMemcpyKind kind : {cudaMemcpyHostToHost, cudaMemcpyDefault}) {
    registered[0] += 5;
    expect_wait_for(stream, [&] {
      const cudaError_t error = cudaMemcpyAsync(pinned, registered.data(), 4, kind, stream);
      EXPECT_EQ(*pinned, registered[0]);
      return error;
    });
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  }
  EXPECT_EQ(cudaHostUnregister(registered.data()), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// The copy reads the word after earlier work of the stream, and before it returns. The write may come later.
TEST(PtxStreams, StagesCopiesOfPageableMemory) {
  OwnedStream stream;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  for (const cudaStream_t each : {cudaStream_t{stream}, cudaStreamLegacy}) {
    std::uint32_t sent = 7, received = 0;
    expect_wait_for(each, [&] {
      const cudaError_t error = each == cudaStreamLegacy
                                    ? cudaMemcpy(memory, &sent, 4, cudaMemcpyDefault)
                                    : cudaMemcpyAsync(memory, &sent, 4, cudaMemcpyHostToDevice, each);
      sent = 8;
      return error;
    });
    EXPECT_EQ(cudaMemcpyAsync(&received, memory, 4, cudaMemcpyDefault, each), cudaSuccess);
    EXPECT_EQ(received, 7U);
    EXPECT_EQ(cudaStreamQuery(each), cudaSuccess);
  }
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

}  // namespace
}  // namespace tutti::test
