#include "perf/gpu/timer.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "perf/gpu/kernels.h"

namespace perf {
namespace {

constexpr int kRuns = 7;
constexpr double kRunUs = 5000;
constexpr int kMaxCalls = 500;  // A stream holds about a thousand operations before the caller waits.

double host_us() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Timer::Timer() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaEventCreate(&begin_), "cudaEventCreate");
  check(cudaEventCreate(&end_), "cudaEventCreate");
}

Timer::~Timer() {
  cudaEventDestroy(end_);
  cudaEventDestroy(begin_);
  cudaStreamDestroy(stream_);
}

void Timer::synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

double Timer::run_us(const std::function<void()>& run, int calls) const {
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    run();
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    synchronize();
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    times.push_back(1e3 * ms / calls);
  }
  return median(std::move(times));
}

double Timer::eager_us(const Enqueue& call) const {
  const auto several = [&](int calls) {
    for (int i = 0; i < calls; ++i) call(stream_);
  };
  several(2);  // Warm-up: creates all objects that are created on first use.
  synchronize();
  const double first = run_us([&] { several(3); }, 3);
  const int calls = std::clamp(static_cast<int>(std::lround(kRunUs / std::max(first, 1.0))), 3, kMaxCalls);
  return run_us([&] { several(calls); }, calls);
}

double Timer::graph_us(const Enqueue& call) const {
  constexpr int kCalls = 100;
  call(stream_);
  synchronize();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < kCalls; ++i) call(stream_);
  check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  check(cudaGraphLaunch(ready, stream_), "cudaGraphLaunch");
  synchronize();
  const double us = run_us([&] { check(cudaGraphLaunch(ready, stream_), "cudaGraphLaunch"); }, kCalls);
  check(cudaGraphExecDestroy(ready), "cudaGraphExecDestroy");
  return us;
}

double Timer::enqueue_us(const Enqueue& call) const {
  constexpr int kCalls = 40;  // Calls have up to 17 operations; more calls would wait for space in the queue.
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    synchronize();
    const double start = host_us();
    for (int i = 0; i < kCalls; ++i) call(stream_);
    times.push_back((host_us() - start) / kCalls);
  }
  synchronize();
  return median(std::move(times));
}

}  // namespace perf
