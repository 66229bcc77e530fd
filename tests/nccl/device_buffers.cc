#include "tests/nccl/device_buffers.h"

#include <gtest/gtest.h>

#include <thread>

#include "src/base/atomic.h"
#include "tests/nccl/clients.h"
#include "tests/nccl/newer_nccl.h"

namespace tutti::test {
namespace {

constexpr int kMaxRanks = 8;
constexpr std::size_t kMaxHolds = 1024;

// Objects of tests exist as long as the program, like the device.
struct Streams {
  Streams() {
    for (DeviceStream& stream : streams) stream = current_rig().make_stream();
  }
  DeviceStream streams[kMaxRanks];
};

// Words for which streams wait, one for each put().
struct Holds {
  HostMemory words = current_rig().device().allocate_host(kMaxHolds * sizeof(std::uint32_t)).value();
  std::size_t used = 0;
};

}  // namespace

const int* device_list() {
  static constexpr int devices[kMaxRanks] = {};
  return devices;
}

cudaStream_t stream_of(int rank) {
  static const Streams& all = *new Streams;
  return static_cast<cudaStream_t>(all.streams[rank]);
}

void finish(int rank) {
  const Status status = current_rig().synchronize(stream_of(rank));
  EXPECT_TRUE(status.ok()) << status.message();
}

void release_cached_memory() {
  const NcclRanks ranks(2);
  ranks.run([](int rank, ncclComm_t comm) { expect_sum(comm, rank, 3); });
  NCCL_EXPECT_OK(
      ranks.run_in_group([](int, ncclComm_t comm) { NCCL_EXPECT_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); }));
}

void put(cudaStream_t stream, std::function<void()> work) {
  static Holds& holds = *new Holds;
  const std::size_t hold = holds.used++;
  TUTTI_ASSERT(hold < kMaxHolds);
  Device& device = current_rig().device();
  std::shared_ptr<DeviceEvent> before = device.make_event().value();
  EXPECT_TRUE(before->record(stream).ok());
  EXPECT_TRUE(device.hold_until(reinterpret_cast<std::uint32_t*>(holds.words.device) + hold, 1, stream).ok());
  std::thread([before = std::move(before), work = std::move(work), hold]() mutable {
    while (!before->reached().value()) std::this_thread::yield();
    before.reset();
    work();
    store_release(reinterpret_cast<std::uint32_t*>(holds.words.host) + hold, 1U);
  }).detach();
}

}  // namespace tutti::test
