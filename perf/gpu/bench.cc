// gpu_bench FILE.json: benchmark of ranks of one process that share a GPU. Measures copy bandwidth, launch costs, and
// all-reduces by Tutti and by a hand-written kernel, compared with the minimum amount of data to move. Checks every
// result.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "perf/gpu/competitors.h"
#include "perf/gpu/timer.h"
#include "perf/tool/fail.h"
#include "perf/tool/json.h"

namespace perf {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr int kRankCounts[] = {2, 4, 8};

struct Best {
  double us = 0;
  int blocks = 0;
};

class Bench {
 public:
  explicit Bench(std::string path) : json_(std::move(path)) {}

  bool run() {
    json_.open(nullptr, '{');
    describe();
    probe_memory();
    probe_launches();
    json_.open("large", '[');
    std::printf("\nranks      bytes   tutti us    hand us (blocks)  hand/tutti  floor/tutti  floor/hand\n");
    for (const int ranks : kRankCounts) large(ranks);
    json_.close(']');
    json_.open("small", '[');
    std::printf(
        "\nranks      bytes  tutti eager, graph us  two_shot_mapped eager, graph us  by hand eager, graph us\n");
    for (const int ranks : kRankCounts) small(ranks);
    json_.close(']');
    json_.field("wrong", wrong_);
    json_.close('}');
    if (!json_.finish()) fail("writing the results failed");
    std::printf("\nwrong elements: %llu\n", static_cast<unsigned long long>(wrong_));
    return wrong_ == 0;
  }

 private:
  void describe() {
    int driver = 0, runtime = 0;
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    json_.field("gpu", properties.name);
    json_.field("multiprocessors", static_cast<std::uint64_t>(properties.multiProcessorCount));
    json_.field("l2_bytes", static_cast<std::uint64_t>(properties.l2CacheSize));
    json_.field("driver_cuda", static_cast<std::uint64_t>(driver));
    json_.field("runtime_cuda", static_cast<std::uint64_t>(runtime));
    std::printf("%s, %d multiprocessors, driver for CUDA %d\n", properties.name, properties.multiProcessorCount,
                driver);
  }

  // Measures copy bandwidth, counting bytes read and written, by the faster of the driver's copy and a kernel.
  void probe_memory() {
    constexpr std::size_t bytes = 1024 * kMiB;
    void* memory = nullptr;
    check(cudaMalloc(&memory, 2 * bytes), "cudaMalloc");
    check(cudaMemset(memory, 1, 2 * bytes), "cudaMemset");
    void* to = static_cast<char*>(memory) + bytes;
    const double driver_us = timer_.eager_us([&](cudaStream_t stream) {
      check(cudaMemcpyAsync(to, memory, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    });
    const double kernel_us = timer_.eager_us([&](cudaStream_t stream) { copy(to, memory, bytes, stream); });
    check(cudaFree(memory), "cudaFree");
    copied_per_us_ = 2 * static_cast<double>(bytes) / std::min(driver_us, kernel_us);
    json_.field("copy_driver_gb_s", 2e-3 * static_cast<double>(bytes) / driver_us);
    json_.field("copy_kernel_gb_s", 2e-3 * static_cast<double>(bytes) / kernel_us);
    std::printf("copy of 1 GiB: %.0f GB/s (driver %.0f us, kernel %.0f us), bytes read and written\n",
                copied_per_us_ / 1e3, driver_us, kernel_us);
  }

  void probe_launches() {
    const double plain = timer_.eager_us(nothing), graph = timer_.graph_us(nothing);
    const double cooperative = timer_.eager_us([](cudaStream_t stream) { nothing_cooperative(8, stream); });
    const double enqueue = timer_.enqueue_us(nothing);
    const Buffers buffers(8, 4 * kKiB, timer_.stream());
    const auto tutti = tutti_all_reduces(buffers, "two_shot_mapped");
    const double call = timer_.enqueue_us([&](cudaStream_t stream) { tutti->enqueue(2, stream); });
    tutti->settled();
    json_.open("launch", '{');
    json_.field("empty_eager_us", plain);
    json_.field("empty_graph_us", graph);
    json_.field("empty_cooperative_us", cooperative);
    json_.field("empty_enqueue_us", enqueue);
    json_.field("tutti_enqueue_8_ranks_us", call);
    json_.close('}');
    std::printf(
        "empty launch: %.2f us, cooperative %.2f us, in a graph %.2f us; enqueueing: %.2f us, a call of 8 ranks %.2f "
        "us\n",
        plain, cooperative, graph, enqueue, call);
  }

  // Runs the competitor once on outputs that were overwritten, and counts wrong elements.
  void verify(Competitor& competitor, Buffers& buffers, std::size_t count) {
    buffers.spoil(count, timer_.stream());
    competitor.enqueue(count, timer_.stream());
    timer_.synchronize();
    competitor.settled();
    const std::uint64_t wrong = buffers.wrong(count, timer_.stream());
    if (wrong > 0) std::printf("%llu elements of %zu are wrong\n", static_cast<unsigned long long>(wrong), count);
    wrong_ += wrong;
  }

  double eager_us(Competitor& competitor, Buffers& buffers, std::size_t count) {
    verify(competitor, buffers, count);
    const double us = timer_.eager_us([&](cudaStream_t stream) { competitor.enqueue(count, stream); });
    competitor.settled();
    return us;
  }

  double graph_us(Competitor& competitor, std::size_t count) {
    const double us = timer_.graph_us([&](cudaStream_t stream) { competitor.enqueue(count, stream); });
    competitor.settled();
    return us;
  }

  // Time of the hand-written kernel with the best number of thread blocks.
  Best best_by_hand(Buffers& buffers, std::size_t count) {
    const int most = max_blocks(buffers.ranks());
    Best best;
    for (int blocks = most; blocks >= std::max(1, most / 8); blocks /= 2) {
      const auto hand = by_hand(buffers, blocks);
      const double us = eager_us(*hand, buffers, count);
      if (best.blocks == 0 || us < best.us) best = {us, blocks};
    }
    return best;
  }

  void large(int ranks) {
    Buffers buffers(ranks, 1024 * kMiB, timer_.stream());
    const auto tutti = tutti_all_reduces(buffers, "two_shot_mapped");
    for (const std::size_t bytes : {kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB, 1024 * kMiB}) {
      const std::size_t count = bytes / sizeof(float);
      const Best hand = best_by_hand(buffers, count);
      const double us = eager_us(*tutti, buffers, count);
      const double floor_us = 2.0 * ranks * static_cast<double>(bytes) / copied_per_us_;
      json_.open(nullptr, '{');
      json_.field("ranks", static_cast<std::uint64_t>(ranks));
      json_.field("bytes", std::uint64_t{bytes});
      json_.field("tutti_us", us);
      json_.field("hand_us", hand.us);
      json_.field("hand_blocks", static_cast<std::uint64_t>(hand.blocks));
      json_.field("floor_us", floor_us);
      json_.close('}');
      std::printf("%5d %10zu %10.1f %10.1f (%6d) %11.3f %12.3f %11.3f\n", ranks, bytes, us, hand.us, hand.blocks,
                  hand.us / us, floor_us / us, floor_us / hand.us);
      std::fflush(stdout);
    }
  }

  void small(int ranks) {
    Buffers buffers(ranks, 64 * kKiB, timer_.stream());
    const auto chosen = tutti_all_reduces(buffers, "");
    const auto mapped = tutti_all_reduces(buffers, "two_shot_mapped");
    const auto hand = by_hand(buffers, std::min(4, max_blocks(ranks)));
    for (const std::size_t bytes :
         {std::size_t{8}, std::size_t{64}, std::size_t{512}, 4 * kKiB, 16 * kKiB, 64 * kKiB}) {
      const std::size_t count = bytes / sizeof(float);
      json_.open(nullptr, '{');
      json_.field("ranks", static_cast<std::uint64_t>(ranks));
      json_.field("bytes", std::uint64_t{bytes});
      std::printf("%5d %10zu", ranks, bytes);
      for (const auto& [name, competitor] :
           {std::pair{"tutti", chosen.get()}, {"two_shot_mapped", mapped.get()}, {"hand", hand.get()}}) {
        const double eager = eager_us(*competitor, buffers, count), graph = graph_us(*competitor, count);
        json_.field((std::string(name) + "_eager_us").c_str(), eager);
        json_.field((std::string(name) + "_graph_us").c_str(), graph);
        std::printf("  %10.2f %9.2f", eager, graph);
      }
      json_.close('}');
      std::printf("\n");
      std::fflush(stdout);
    }
  }

  Json json_;
  Timer timer_;
  double copied_per_us_ = 0;
  std::uint64_t wrong_ = 0;
};

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  perf::set_program_name(argv[0]);
  if (argc != 2) perf::fail("usage: gpu_bench FILE.json");
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error != cudaSuccess || gpus == 0) perf::fail("no GPU is available: %s", cudaGetErrorString(error));
  return perf::Bench(argv[1]).run() ? 0 : 1;
}
