// gpu_latencies FILE.json: time of single loads, stores and fences, by the number of thread blocks that execute them at
// the same time, and of round trips between two thread blocks of one GPU. Kernels synchronize ranks with these
// operations; src/model/gpu_kernel.cc has their constants.
#include <cuda_runtime.h>

#include <cuda/atomic>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "perf/gpu/timer.h"
#include "perf/tool/fail.h"
#include "perf/tool/gpu_check.h"
#include "perf/tool/json.h"

namespace perf {
namespace {

using Word = std::uint32_t;
template <typename T>
using System = cuda::atomic_ref<T, cuda::thread_scope_system>;

template <typename T>
__device__ T load(T* word, cuda::memory_order order = cuda::memory_order_relaxed) {
  return System<T>(*word).load(order);
}
template <typename T>
__device__ void store(T* word, T value, cuda::memory_order order) {
  System<T>(*word).store(value, order);
}
__device__ void fence() { cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system); }

// A word of LL: data and flag in one access.
__device__ void store_pair(std::uint64_t* words, std::uint64_t value) {
  asm volatile("st.volatile.v2.u64 [%0], {%1, %1};" ::"l"(words), "l"(value) : "memory");
}
__device__ std::uint64_t load_flag(const std::uint64_t* words) {
  std::uint64_t pair[2];
  asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];" : "=l"(pair[0]), "=l"(pair[1]) : "l"(words) : "memory");
  return pair[1];
}

constexpr std::uint32_t kLine = 32;  // Words of a cache line.
constexpr int kBlockCounts[] = {1, 8, 32, 132};
constexpr int kRepeats = 32, kRounds = 1000;

enum class Operation { load_host, load_host_line, load, release, release_host, fence, store_host_fence, barrier };
constexpr struct {
  Operation operation;
  const char* name;
} kOperations[] = {
    {Operation::load_host, "load of one word of host memory by all blocks"},
    {Operation::load_host_line, "load of host memory, a line per block"},
    {Operation::load, "load of device memory"},
    {Operation::release, "store-release to device memory, system scope"},
    {Operation::release_host, "store-release to host memory"},
    {Operation::fence, "sequentially consistent fence, system scope"},
    {Operation::store_host_fence, "store to host memory and such a fence"},
    {Operation::barrier, "barrier of 512 threads"},
};

// Each thread block repeats the operation; loads depend on each other.
__global__ void repeat(Operation operation, Word* host, Word* device, long long* cycles) {
  if (threadIdx.x != 0 && operation != Operation::barrier) return;
  Word* const host_line = host + kLine * (1 + blockIdx.x);
  Word* const device_line = device + kLine * (1 + blockIdx.x);
  Word loaded = 0;
  const long long begin = clock64();
  for (int i = 0; i < kRepeats; ++i) {
    switch (operation) {
      case Operation::load_host: loaded += load(host + loaded); break;
      case Operation::load_host_line: loaded += load(host_line + loaded); break;
      case Operation::load: loaded += load(device_line + loaded); break;
      case Operation::release: store(device_line, loaded, cuda::memory_order_release); break;
      case Operation::release_host: store(host_line, loaded, cuda::memory_order_release); break;
      case Operation::fence: fence(); break;
      case Operation::store_host_fence:
        store(host_line, loaded, cuda::memory_order_relaxed);
        fence();
        break;
      case Operation::barrier: __syncthreads(); break;
    }
  }
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin + loaded;  // All words are 0.
}

// Two thread blocks answer each other. `pairs`: with words of LL, which hold data and flag; otherwise with flags.
__global__ void answer(std::uint64_t* words, bool pairs, long long* cycles) {
  const bool first = blockIdx.x == 0;
  std::uint64_t* const own = words + (first ? 0 : kLine);
  std::uint64_t* const peers = words + (first ? kLine : 0);
  const long long begin = clock64();
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const auto send = [&] { pairs ? store_pair(own, round) : store(own, round, cuda::memory_order_release); };
    const auto arrived = [&] { return (pairs ? load_flag(peers) : load(peers, cuda::memory_order_acquire)) == round; };
    if (first) send();
    while (!arrived()) {
    }
    if (!first) send();
  }
  if (first) cycles[0] = clock64() - begin;
}

class Latencies {
 public:
  explicit Latencies(std::string path) : json_(std::move(path)) {
    int khz = 0;
    check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0), "cudaDeviceGetAttribute");
    if (khz <= 0) fail("the driver does not report the clock rate of the device");
    cycles_per_ns_ = khz * 1e-6;
    check(cudaHostAlloc(&host_, kBytes, cudaHostAllocMapped), "cudaHostAlloc");
    std::fill_n(host_, kBytes / sizeof(Word), 0);
    check(cudaMalloc(&device_, kBytes), "cudaMalloc");
    check(cudaMalloc(&cycles_, kBytes), "cudaMalloc");
  }

  void run() {
    json_.open(nullptr, '{');
    std::printf("%-48s", "ns, by the number of thread blocks");
    for (const int blocks : kBlockCounts) std::printf("%9d", blocks);
    for (const auto& [operation, name] : kOperations) {
      std::printf("\n%-48s", name);
      json_.open(name, '{');
      for (const int blocks : kBlockCounts) {
        const double ns = ns_of(operation, blocks);
        std::printf("%9.0f", ns);
        json_.field(std::to_string(blocks).c_str(), ns);
      }
      json_.close('}');
    }
    for (const bool pairs : {false, true}) {
      const char* name = pairs ? "round trip of words of LL" : "round trip of flags";
      const double ns = ns_of_round_trip(pairs);
      std::printf("\n%-48s%9.0f", name, ns);
      json_.field(name, ns);
    }
    std::printf("\n");
    json_.close('}');
    if (!json_.finish()) fail("writing the results failed");
  }

 private:
  static constexpr std::size_t kBytes = 64 * 1024;

  // Cycles of the slowest block in the second of two launches.
  long long cycles_of(const std::function<void()>& launch, int blocks) {
    std::vector<long long> cycles(static_cast<std::size_t>(blocks));
    for (int launches = 0; launches < 2; ++launches) {
      check(cudaMemset(device_, 0, kBytes), "cudaMemset");
      launch();
      check(cudaMemcpy(cycles.data(), cycles_, cycles.size() * sizeof(long long), cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    }
    return *std::max_element(cycles.begin(), cycles.end());
  }
  double ns_of(Operation operation, int blocks) {
    const unsigned threads = operation == Operation::barrier ? 512 : 32;
    const auto launch = [&] { repeat<<<static_cast<unsigned>(blocks), threads>>>(operation, host_, device_, cycles_); };
    return static_cast<double>(cycles_of(launch, blocks)) / kRepeats / cycles_per_ns_;
  }
  double ns_of_round_trip(bool pairs) {
    const auto launch = [&] { answer<<<2, 1>>>(reinterpret_cast<std::uint64_t*>(device_), pairs, cycles_); };
    return static_cast<double>(cycles_of(launch, 1)) / kRounds / cycles_per_ns_;
  }

  Json json_;
  double cycles_per_ns_ = 0;
  Word* host_ = nullptr;  // Mapped; devices use the same address.
  Word* device_ = nullptr;
  long long* cycles_ = nullptr;
};

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  perf::set_program_name(argv[0]);
  if (argc != 2) perf::fail("usage: gpu_latencies FILE.json");
  perf::Latencies(argv[1]).run();
  return 0;
}
