// Helpers of the tests of the CUDA stand-in: functions of the driver, and streams that wait for the test.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "src/base/atomic.h"

namespace tutti::test {

template <typename Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), cudaSuccess);
  EXPECT_EQ(result, cudaDriverEntryPointSuccess) << name;
  return reinterpret_cast<Function*>(found);
}

// A word on which streams wait until open().
class StreamHold {
 public:
  StreamHold() {
    EXPECT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&word_), sizeof *word_, cudaHostAllocDefault), cudaSuccess);
    *word_ = 0;
  }
  ~StreamHold() {
    open();
    EXPECT_EQ(cudaFreeHost(word_), cudaSuccess);
  }
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;

  void hold(cudaStream_t stream) {
    static auto* const wait = driver_function<decltype(cuStreamWaitValue32)>("cuStreamWaitValue32");
    EXPECT_EQ(wait(stream, reinterpret_cast<CUdeviceptr>(word_), 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  }
  void open() { store_release(word_, 1U); }

 private:
  std::uint32_t* word_ = nullptr;
};

class OwnedStream {
 public:
  explicit OwnedStream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
  }
  ~OwnedStream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class OwnedEvent {
 public:
  explicit OwnedEvent(unsigned flags = cudaEventDefault) {
    EXPECT_EQ(cudaEventCreateWithFlags(&event_, flags), cudaSuccess);
  }
  ~OwnedEvent() { EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess); }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace tutti::test
