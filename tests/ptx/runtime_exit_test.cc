// Calls after main(). PyTorch, for example, frees its communicators and memory in static destructors.
#include <nccl.h>

#include <cstdlib>

#include "tests/ptx/runtime_gate.h"
#include "tests/ptx/runtime_kernels.h"

namespace tutti::test {
namespace {

constexpr unsigned kWords = 64;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "failed after main(): %s\n", what);
  ::_exit(1);
}

// Exists before main(), so that it is destroyed after the objects of threads and the static objects of functions.
class CallsAfterMain {
 public:
  void prepare() {
    for (cudaStream_t& stream : streams_)
      require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "cudaStreamCreateWithFlags");
    require(cudaMalloc(reinterpret_cast<void**>(&words_), kWords * sizeof *words_) == cudaSuccess, "cudaMalloc");
    require(cudaMemset(words_, 0, kWords * sizeof *words_) == cudaSuccess, "cudaMemset");
    require(cudaDeviceSynchronize() == cudaSuccess,
            "cudaDeviceSynchronize");  // The streams do not wait for cudaMemset().
    require(ncclCommInitAll(comms_, 2, devices_) == ncclSuccess, "ncclCommInitAll");
    require(reduce(), "ncclAllReduce");
    prepared_ = true;
  }

  ~CallsAfterMain() {
    if (!prepared_) return;
    std::uint32_t last = 0;
    void* arguments[] = {&words_};
    require(reduce(), "ncclAllReduce");
    for (const ncclComm_t comm : comms_) require(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy");
    // Loads the kernel.
    require(cudaLaunchKernel(store_kernel(), dim3(1), dim3(kWords), arguments, 0, nullptr) == cudaSuccess, "a launch");
    require(cudaMemcpy(&last, words_ + kWords - 1, sizeof last, cudaMemcpyDefault) == cudaSuccess, "cudaMemcpy");
    require(last == kWords, "the result of a kernel");
    for (const cudaStream_t stream : streams_) require(cudaStreamDestroy(stream) == cudaSuccess, "cudaStreamDestroy");
    require(cudaFree(words_) == cudaSuccess, "cudaFree");
    std::fprintf(stderr, "all calls after main() succeeded\n");
  }

 private:
  // Sums the first word of the ranks.
  bool reduce() const {
    bool ok = ncclGroupStart() == ncclSuccess;
    for (int rank = 0; rank < 2; ++rank) {
      std::uint32_t* result = words_ + 1 + rank;
      ok = ncclAllReduce(words_, result, 1, ncclUint32, ncclSum, comms_[rank], streams_[rank]) == ncclSuccess && ok;
    }
    ok = ncclGroupEnd() == ncclSuccess && ok;
    for (const cudaStream_t stream : streams_) ok = cudaStreamSynchronize(stream) == cudaSuccess && ok;
    return ok;
  }

  static constexpr int devices_[] = {0, 0};
  bool prepared_ = false;
  cudaStream_t streams_[2] = {};
  std::uint32_t* words_ = nullptr;
  ncclComm_t comms_[2] = {};
};

CallsAfterMain calls_after_main;

TEST(PtxExit, StaticDestructorsUseTheRuntime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // Runs the statement in a new process.
  EXPECT_EXIT(
      {
        calls_after_main.prepare();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "all calls after main\\(\\) succeeded");
}

}  // namespace
}  // namespace tutti::test
