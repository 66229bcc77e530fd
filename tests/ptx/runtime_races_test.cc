// Races between operations of streams and graphs by the CUDA stand-in. Each case is a process, since faults remain.
#include <functional>
#include <vector>

#include "tests/bootstrap/processes.h"
#include "tests/ptx/runtime_gate.h"
#include "tests/ptx/runtime_kernels.h"

namespace tutti::test {
namespace {

constexpr std::size_t kBytes = 256;
constexpr std::size_t kMaxStagedBytes = 64 << 10;  // The maximum of copies that return before they are done.

void succeed(cudaError_t error) { EXPECT_EQ(error, cudaSuccess); }

// Two streams, of which one writes memory before the other does.
struct Streams {
  explicit Streams(unsigned flags = cudaStreamNonBlocking) : a(flags), b(flags) {
    succeed(cudaMalloc(&memory, kMaxStagedBytes + 1));
  }
  void fill(cudaStream_t stream) const { succeed(cudaMemsetAsync(memory, 1, kBytes, stream)); }
  void store(cudaStream_t stream, const void* kernel = store_kernel()) const {
    const void* argument = memory;
    void* arguments[] = {&argument};
    succeed(cudaLaunchKernel(kernel, dim3(1), dim3(kBytes / 4), arguments, 0, stream));
  }
  void copy(cudaStream_t stream) const {
    void* copy = nullptr;
    succeed(cudaMalloc(&copy, kBytes));
    succeed(cudaMemcpyAsync(copy, memory, kBytes, cudaMemcpyDeviceToDevice, stream));
  }
  void wait_for_a() const {
    succeed(cudaEventRecord(event, a));
    succeed(cudaStreamWaitEvent(b, event, 0));
  }

  OwnedStream a, b;
  OwnedEvent event;
  void* memory = nullptr;
};

// Expects that the device has a fault if and only if the operations that `body` enqueues are not ordered.
void expect_race_unless_ordered(const std::function<void(bool ordered)>& body) {
  for (const bool ordered : {true, false}) {
    Processes processes;
    processes.start([&]() -> std::string {
      body(ordered);
      const cudaError_t error = cudaDeviceSynchronize();
      if (error != (ordered ? cudaSuccess : cudaErrorLaunchFailure)) return cudaGetErrorName(error);
      return testing::Test::HasFailure() ? "a call failed" : "";
    });
    EXPECT_EQ(processes.report(0), "") << (ordered ? "ordered" : "not ordered");
  }
}

TEST(PtxRaces, AreOrderedByEvent) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    streams.fill(streams.a);
    if (ordered) streams.wait_for_a();
    streams.store(streams.b);
  });
}

TEST(PtxRaces, AreOrderedByHostThatAwaitsStream) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    streams.store(streams.a);
    if (ordered) succeed(cudaStreamSynchronize(streams.a));
    streams.fill(streams.b);
  });
}

// cudaMemcpy() copies in the legacy stream, and returns before the bytes have arrived on the device.
TEST(PtxRaces, AreNotOrderedByCopyOfPageableMemory) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    const std::vector<char> pageable(kBytes, 1);
    succeed(cudaMemcpy(streams.memory, pageable.data(), kBytes, cudaMemcpyDefault));
    if (ordered) succeed(cudaStreamSynchronize(nullptr));
    streams.copy(streams.b);
  });
}

TEST(PtxRaces, AreOrderedByStreamOfCopyOfPageableMemory) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    const std::vector<char> pageable(kBytes, 1);
    succeed(cudaMemcpyAsync(streams.memory, pageable.data(), kBytes, cudaMemcpyHostToDevice, streams.a));
    streams.store(ordered ? streams.a : streams.b);
  });
}

TEST(PtxRaces, AreOrderedByLargeCopyOfPageableMemory) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    const std::vector<char> pageable(kMaxStagedBytes + (ordered ? 1 : 0), 1);
    succeed(cudaMemcpy(streams.memory, pageable.data(), pageable.size(), cudaMemcpyDefault));
    streams.store(streams.b);
  });
}

// cudaMemcpy() waits for earlier work of its stream before it copies; cudaMemcpyAsync() need not.
TEST(PtxRaces, AreOrderedByWaitOfCopyOfPageableMemory) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    const std::uint32_t pageable = 1;
    void* other = nullptr;
    succeed(cudaMalloc(&other, sizeof pageable));
    streams.fill(nullptr);
    succeed(ordered ? cudaMemcpy(other, &pageable, sizeof pageable, cudaMemcpyHostToDevice)
                    : cudaMemcpyAsync(other, &pageable, sizeof pageable, cudaMemcpyHostToDevice, nullptr));
    streams.store(streams.b);
  });
}

TEST(PtxRaces, AreOrderedByHostThatQueriesEvent) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    streams.store(streams.a);
    succeed(cudaEventRecord(streams.event, streams.a));
    while (ordered && cudaEventQuery(streams.event) == cudaErrorNotReady) {
    }
    streams.fill(streams.b);
  });
}

TEST(PtxRaces, AreOrderedByLegacyStream_WhenStreamsAreBlocking) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams(ordered ? cudaStreamDefault : cudaStreamNonBlocking);
    streams.fill(nullptr);
    streams.store(streams.b);
  });
}

TEST(PtxRaces, AreOrderedByWaitForDevice_AfterStreamWasDestroyed) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    cudaStream_t destroyed = nullptr;
    succeed(cudaStreamCreateWithFlags(&destroyed, cudaStreamNonBlocking));
    streams.fill(destroyed);
    succeed(cudaStreamDestroy(destroyed));
    void* other = nullptr;
    succeed(cudaMalloc(&other, kBytes));
    succeed(cudaMemsetAsync(other, 1, kBytes, streams.a));
    succeed(cudaStreamSynchronize(streams.a));  // Copies run in this order, so that the first one has ended, too.
    if (ordered) succeed(cudaDeviceSynchronize());
    streams.store(streams.b);
  });
}

TEST(PtxRaces, AreOrderedByEdgeOfGraph) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t instance = nullptr;
    succeed(cudaStreamBeginCapture(streams.a, cudaStreamCaptureModeGlobal));
    if (!ordered) streams.wait_for_a();
    streams.fill(streams.a);
    if (ordered) streams.wait_for_a();
    streams.store(streams.b);
    succeed(cudaEventRecord(streams.event, streams.b));
    succeed(cudaStreamWaitEvent(streams.a, streams.event, 0));
    succeed(cudaStreamEndCapture(streams.a, &graph));
    succeed(cudaGraphInstantiate(&instance, graph, 0));
    // The fault of an unordered launch may come before the next launch, which would then fail.
    for (int i = 0; i < (ordered ? 2 : 1); ++i) succeed(cudaGraphLaunch(instance, streams.a));
  });
}

TEST(PtxRaces, AreOrderedByWordsOfStreams) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    void* word = nullptr;
    succeed(cudaMallocHost(&word, 4));
    const auto address = reinterpret_cast<CUdeviceptr>(word);
    if (!ordered) streams.store(streams.b);
    streams.fill(streams.a);
    driver_function<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32")(streams.a, address, 3, 0);
    driver_function<decltype(cuStreamWaitValue32)>("cuStreamWaitValue32")(streams.b, address, 3,
                                                                          CU_STREAM_WAIT_VALUE_EQ);
    if (ordered) streams.store(streams.b);
  });
}

// The stream waits for a word that the host stores, after it has awaited the other stream or not.
TEST(PtxRaces, AreOrderedByWordOfHost) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    auto& hold = *new StreamHold;
    hold.hold(streams.b);
    streams.store(streams.b);
    streams.fill(streams.a);
    if (ordered) succeed(cudaStreamSynchronize(streams.a));
    hold.open();
  });
}

// With one hardware queue, operations of different streams follow each other. Programs must not rely on it.
TEST(PtxRaces, AreNotOrderedByHardwareQueue) {
  expect_race_unless_ordered([](bool ordered) {
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
    auto& streams = *new Streams;
    StreamHold& hold = *new StreamHold;
    hold.hold(streams.a);
    streams.fill(streams.a);
    if (ordered) streams.wait_for_a();
    streams.store(streams.b);
    hold.open();
  });
}

// The first launch of the kernel waits for the other stream, which later ones do not.
TEST(PtxRaces, AreNotOrderedByLocalMemory) {
  expect_race_unless_ordered([](bool ordered) {
    auto& streams = *new Streams;
    streams.fill(streams.a);
    if (ordered) streams.wait_for_a();
    streams.store(streams.b, local_kernel());
  });
}

}  // namespace
}  // namespace tutti::test
