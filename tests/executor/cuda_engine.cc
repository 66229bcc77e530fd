#include "tests/executor/cuda_engine.h"

#include <algorithm>
#include <stdexcept>

namespace tutti::test {
namespace {

constexpr std::size_t kLargestPooled = std::size_t{4} << 20;
constexpr std::uint64_t kTimeoutNs = 10'000'000'000;  // Without progress for this long, the test reports a deadlock.

// Words that a rank's thread blocks and the host share.
struct Shown {
  FailedWords failed;
  KernelProgress progress;
};

void must(Status status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}
void must(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

}  // namespace

CudaEngine::CudaEngine(Launches launches, Room room)
    : launches_(launches),
      room_(room),
      device_(find_device().value()),
      reach_(*device_),
      pool_({.max_blocks_per_chunk = 4, .largest_required_pool_block = kLargestPooled}, &reach_),
      own_(*device_) {
  shown_ = device_->allocate_host(kMaxCalls * sizeof(Shown)).value();
  streams_.resize(launches == Launches::together ? 1 : kMaxCalls);
  for (cudaStream_t& stream : streams_) must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

CudaEngine::~CudaEngine() {
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  device_->free_host(shown_);
}

std::string CudaEngine::run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) {
  thread_block_bytes_ = 0;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) reinterpret_cast<Shown*>(shown_.host)[rank] = {};
  std::vector<std::vector<BatchCall>> operations(calls.front().size());
  for (std::uint32_t rank = 0; rank < calls.size(); ++rank) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      operations[i].push_back(prepared(calls[rank][i], channels, rank));
      operations[i].back().watch.number = i + 1;
    }
  }
  for (const std::vector<BatchCall>& operation : operations) launch(operation);
  for (cudaStream_t stream : streams_) must(cudaStreamSynchronize(stream));
  for (const auto& [memory, bytes] : workspaces_) own_.deallocate(memory, bytes);
  workspaces_.clear();
  std::string error = errors(calls.size());
  for (std::size_t rank = 0; rank < calls.size() && error.empty(); ++rank) {
    if (reinterpret_cast<const Shown*>(shown_.host)[rank].progress.passed != operations.size())
      error = "rank " + std::to_string(rank) + " has not reported that its last call ended";
  }
  return error;
}

BatchCall CudaEngine::prepared(const KernelCall& call, std::uint32_t channels, std::uint32_t rank) {
  const ChannelLayout layout(*reinterpret_cast<const Image*>(call.image));
  auto* shown = reinterpret_cast<Shown*>(shown_.device) + rank;
  BatchCall entry;
  entry.call = call;
  entry.channels = channels;
  entry.watch.failed = &shown->failed;
  entry.watch.timeout_ns = kTimeoutNs;
  entry.watch.kernel_progress = &shown->progress;
  if (room_ == Room::shared_memory) {
    thread_block_bytes_ = std::max(thread_block_bytes_, layout.bytes);
    return entry;
  }
  const std::size_t bytes = std::size_t{layout.bytes} * channels;
  entry.call.workspace = static_cast<std::byte*>(own_.allocate(bytes));
  workspaces_.emplace_back(entry.call.workspace, bytes);
  entry.workspace_bytes = layout.bytes;
  return entry;
}

void CudaEngine::launch(const std::vector<BatchCall>& operation) {
  DeviceLaunch all{.thread_block_bytes = thread_block_bytes_};
  if (launches_ == Launches::together) {
    std::copy(operation.begin(), operation.end(), all.batch.calls);
    all.count = static_cast<std::uint32_t>(operation.size());
    all.together = true;
    must(device_->launch(all, streams_[0]));
    return;
  }
  all.count = 1;
  for (std::size_t rank = 0; rank < operation.size(); ++rank) {
    all.batch.calls[0] = operation[rank];
    must(device_->launch(all, streams_[rank]));
  }
}

std::string CudaEngine::errors(std::size_t ranks) const {
  std::string text;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const KernelReport& report = reinterpret_cast<const Shown*>(shown_.host)[rank].progress.report;
    if (report.written == 0) continue;
    text += "rank " + std::to_string(rank) + ", channel " + std::to_string(report.channel) + ", step " +
            std::to_string(report.step) + ", signature " + std::to_string(report.signature) +
            (report.mismatch != 0 ? ": a message of another call from " : ": waits without end for ") +
            std::to_string(report.peer) + (report.sends != 0 ? " to make room; " : "; ");
  }
  return text;
}

}  // namespace tutti::test
