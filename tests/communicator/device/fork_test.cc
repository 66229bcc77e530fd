// Forks while other threads make calls. The child must not wait for locks or threads that exist only in the parent.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "src/communicator/device/memory.h"
#include "tests/bootstrap/processes.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

constexpr int kForks = 50;
constexpr unsigned kTimeoutSeconds = 20;  // Turns a hang of the child into a failure.

// Two time-sliced ranks that make calls without pause. Threads of the test, of the streams and of the ranks are active.
class Callers {
 public:
  Callers() {
    CommunicatorOptions options;
    options.update_agreement_hash();
    // The rig owns the device and outlives the ranks.
    const std::shared_ptr<Device> device(&rig_->device(), [](Device*) {});
    ranks_ = std::move(Communicator::create_all(2, options)).value();
    EXPECT_TRUE(DeviceBackend::attach({ranks_[0].get(), ranks_[1].get()}, device).ok());
    calling_ = std::thread([this] {
      while (!done_) call();
    });
  }
  ~Callers() {
    done_ = true;
    calling_.join();
    ranks_.clear();
    rig_->destroy_stream(stream_);
  }
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  // Destroys the ranks. Children call it.
  void end_ranks() { ranks_.clear(); }

 private:
  void call() {
    float values[] = {1, 2};
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < 2; ++rank) {
      calls.push_back({.communicator = ranks_[rank].get(),
                       .call = call_of(Collective::all_reduce, DataType::float32, 1, &values[rank], &values[rank]),
                       .options = ranks_[rank]->options(),
                       .stream = stream_});
    }
    EXPECT_TRUE(enqueue(calls).ok());
    EXPECT_TRUE(rig_->synchronize(stream_).ok());
    EXPECT_EQ(values[1], 3);
  }

  std::unique_ptr<DeviceRig> rig_ = host_rig({.sharing = ComputeSharing::none});
  const DeviceStream stream_ = rig_->make_stream();
  Communicators ranks_;
  std::atomic<bool> done_ = false;
  std::thread calling_;
};

TEST(DeviceFork, ChildCanDestroyTimeSlicedRanks) {
  Callers callers;
  for (int i = 0; i < kForks && !testing::Test::HasFailure(); ++i) {
    Processes processes;
    processes.start([&]() -> std::string {
      ::alarm(kTimeoutSeconds);
      callers.end_ranks();
      return "ended";
    });
    EXPECT_EQ(processes.report(0), "ended") << "fork " << i;
  }
}

// A thread asks without pause whether memory belongs to a device, as tutti_mem_free() does for host memory. A lock that
// it holds during the fork must not block the child.
TEST(DeviceFork, ChildCanQueryWhetherMemoryIsOnDevice) {
  std::byte none{};
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) EXPECT_FALSE(DeviceMemory::of_process().free(&none));
  });
  for (int i = 0; i < kForks && !testing::Test::HasFailure(); ++i) {
    Processes processes;
    processes.start([&]() -> std::string {
      ::alarm(kTimeoutSeconds);
      return DeviceMemory::of_process().free(&none) ? "a device's" : "none";
    });
    EXPECT_EQ(processes.report(0), "none") << "fork " << i;
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace tutti::test
