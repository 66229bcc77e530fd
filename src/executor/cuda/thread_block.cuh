// A CUDA thread block as a ThreadBlock: its threads run one channel.
#pragma once

#include "src/executor/thread_block/batch.h"
#include "src/executor/thread_block/channel.h"

namespace tutti {

__device__ inline std::uint64_t device_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// The number of threads per thread block must be a power of two.
class CudaThreadBlock {
 public:
  __device__ explicit CudaThreadBlock(const KernelWatch& watch)
      : watch_(watch), began_ns_(watch.timeout_ns == 0 ? 0 : device_ns()) {}

  __device__ std::uint32_t thread() const { return threadIdx.x; }
  __device__ std::uint32_t thread_count() const { return blockDim.x; }
  __device__ std::uint32_t slice(std::uint32_t number) const { return number & (blockDim.x - 1); }
  __device__ MessagePart part(std::uint32_t halvings) const {
    const std::uint32_t bits = static_cast<std::uint32_t>(__popc(blockDim.x - 1)) - halvings;
    const std::uint32_t size = 1U << bits;
    return {threadIdx.x >> bits, 1U << halvings, {threadIdx.x & (size - 1), size}};
  }
  __device__ void join() { __syncthreads(); }

  __device__ Progress agree(Progress progress) {
    if (!__syncthreads_or(progress != Progress::done)) return Progress::done;
    return __syncthreads_or(progress == Progress::mismatch) ? Progress::mismatch : Progress::waiting;
  }

  __device__ bool too_late() const { return load_relaxed(failed()) != 0; }

  // Polled rarely, because host memory is slow to read from the device.
  __device__ bool stopped() {
    ++polls_;
    if (watch_.progress != nullptr && polls_ >= kPollsPerTimeSlice) return true;
    if (polls_ % kPollsPerLook != 0) return false;
    if (load_acquire(failed()) != 0) return true;
    return watch_.timeout_ns != 0 && device_ns() - began_ns_ > watch_.timeout_ns;
  }

 private:
  static constexpr std::uint32_t kPollsPerLook = 512;
  static constexpr std::uint32_t kPollsPerTimeSlice = 16;  // About ten microseconds of unsuccessful polling per launch.

  __device__ const std::uint32_t* failed() const { return watch_.failed->of(blockIdx.x); }

  const KernelWatch& watch_;
  std::uint64_t began_ns_;
  std::uint32_t polls_ = 0;
};

}  // namespace tutti
