#include "src/communicator/device/launch_sequence.h"

#include <algorithm>
#include <utility>

#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// Scratch is the same memory in all calls, on whichever channel.
bool uses_ll_only(const DeviceJob& job) {
  return runs_as_ll(job.entry) && job.entry.call.exchange == nullptr && job.entry.call.self.scratch == nullptr &&
         job.copy_to == nullptr;
}

}  // namespace

bool LaunchSequence::conflict(const Buffer& one, const Buffer& other) {
  const bool overlap = one.begin < other.begin + other.bytes && other.begin < one.begin + one.bytes;
  return overlap && (one.is_output || other.is_output);
}

std::vector<LaunchSequence::Buffer> LaunchSequence::buffers_of(const Call& call) const {
  const Problem problem = problem_of(call, ranks_);
  const std::size_t block_bytes = call.count * size_of(call.type);
  return {{call.input, input_blocks(problem, rank_) * block_bytes, false},
          {call.output, output_blocks(problem, rank_) * block_bytes, true}};
}

bool LaunchSequence::admits(const Call& call, const DeviceJob& job) const {
  if (empty()) return true;
  if (!only_ll_ || !uses_ll_only(job)) return false;
  const std::vector<Buffer> added = buffers_of(call);
  return std::none_of(buffers_.begin(), buffers_.end(), [&](const Buffer& earlier) {
    return std::any_of(added.begin(), added.end(), [&](const Buffer& later) { return conflict(earlier, later); });
  });
}

void LaunchSequence::add(const Call& call, const DeviceJob& job) {
  // The calls share a number. Only the last one reports it, because a report delays the next call.
  if (!empty()) launch_.batch.calls[launch_.count - 1].watch.number = 0;
  launch_.batch.calls[launch_.count++] = job.entry;
  launch_.batch.in_order = launch_.count;
  launch_.thread_block_bytes = std::max(launch_.thread_block_bytes, job.thread_block_bytes);
  launch_.threads = std::max(launch_.threads, job.threads);
  only_ll_ = only_ll_ && uses_ll_only(job);
  const std::vector<Buffer> added = buffers_of(call);
  buffers_.insert(buffers_.end(), added.begin(), added.end());
}

DeviceLaunch LaunchSequence::take() {
  buffers_.clear();
  only_ll_ = true;
  return std::exchange(launch_, {.threads = 0});
}

}  // namespace tutti
