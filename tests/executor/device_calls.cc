#include "tests/executor/device_calls.h"

#include <algorithm>
#include <span>

#include "algorithms/catalogue.h"
#include "src/plan/fuse.h"

namespace tutti::test {
namespace {

const Image& image_of(const KernelCall& call) { return *reinterpret_cast<const Image*>(call.image); }

}  // namespace

std::vector<Plan> plans_of(const Problem& problem, std::string_view algorithm) {
  std::vector<Plan> plans = emit_plans(*find(problem.collective, algorithm), problem);
  for (Plan& plan : plans) {
    expand_all_ranks(plan);
    fuse(plan);
  }
  fuse_stages(plans);
  return plans;
}

std::string DeviceEngine::run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) {
  std::pmr::vector<BlockWords> words(1, &reach_);
  std::vector<DeviceStream> streams(streams_ == Streams::one ? 1 : calls.size());
  for (DeviceStream& stream : streams) stream = rig_.make_stream();
  Status status;
  for (std::size_t operation = 0; operation < calls[0].size(); ++operation) {
    std::vector<DeviceLaunch> launches(streams.size());
    std::uint32_t thread_block_bytes = 0;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      const KernelCall& call = calls[rank][operation];
      DeviceLaunch& launch = launches[rank % streams.size()];
      launch.batch.calls[launch.count++] = {.call = call, .watch = words[0].watch(operation + 1), .channels = channels};
      thread_block_bytes = std::max(thread_block_bytes, ChannelLayout(image_of(call)).bytes);
    }
    for (std::size_t i = 0; i < streams.size() && status.ok(); ++i) {
      launches[i].thread_block_bytes = thread_block_bytes;
      launches[i].together = launches[i].count > 1;
      status = rig_.device().launch(launches[i], streams[i]);
    }
  }
  if (!status.ok()) words[0].failed.set();
  for (DeviceStream stream : streams) {
    Status ended = rig_.synchronize(stream);
    if (status.ok()) status = std::move(ended);
    rig_.destroy_stream(stream);
  }
  if (!status.ok()) return status.message();
  return words[0].progress.report.written != 0 ? "a thread block has given up" : "";
}

DeviceCalls::~DeviceCalls() {
  for (std::byte* memory : memory_) rig_.device().free(memory);
}

void DeviceCalls::prepare(const Problem& problem, std::string_view algorithm, const TestCall& test_call) {
  test_call_ = test_call;
  test_call_.engine = &engine_;
  test_call_.plans[0] = plans_of(problem, algorithm);
  words_.assign(problem.ranks, {});
  rank_set_.reset();  // Later calls reuse its lanes.
  rank_set_ = std::make_unique<RankSet>(test_call_, transport_, std::vector<bool>(problem.ranks, false));
  calls_ = rank_set_->calls();
}

std::byte* DeviceCalls::take(std::size_t bytes) {
  memory_.push_back(rig_.device().allocate(bytes).value());
  return memory_.back();
}

BatchCall DeviceCalls::call(Rank rank, std::uint32_t operation) {
  BatchCall entry;
  entry.call = calls_[rank][operation];
  const std::size_t bytes = entry.call.image_bytes + test_call_.channels * entry.call.lanes * sizeof(LaneState*);
  std::byte* image = take(bytes);
  const Status uploaded = rig_.device().upload(image, {entry.call.image, bytes});
  TUTTI_ASSERT(uploaded.ok());
  entry.call.image = image;
  entry.watch = words_[rank].watch(operation + 1);
  entry.watch.failed = &words_[0].failed;
  entry.channels = test_call_.channels;
  return entry;
}

BatchCall DeviceCalls::in_workspace(BatchCall call) {
  call.workspace_bytes = ChannelLayout(image_of(calls_[call.call.rank][0])).bytes;
  call.call.workspace = take(std::size_t{call.workspace_bytes} * call.channels);
  return call;
}

Status DeviceCalls::launch(const std::vector<BatchCall>& calls, DeviceStream stream) {
  DeviceLaunch all{.count = static_cast<std::uint32_t>(calls.size()), .together = calls.size() > 1};
  for (const BatchCall& call : calls) {
    if (call.call.workspace != nullptr) continue;
    all.thread_block_bytes = std::max(all.thread_block_bytes, ChannelLayout(image_of(calls_[call.call.rank][0])).bytes);
  }
  std::copy(calls.begin(), calls.end(), all.batch.calls);
  return rig_.device().launch(all, stream);
}

}  // namespace tutti::test
