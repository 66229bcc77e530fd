// The API with buffers on the GPU emulator, or on a GPU that can access all host memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "src/base/atomic.h"
#include "tests/executor/current_rig.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 2000;

tutti_stream handle(DeviceStream stream) { return static_cast<tutti_stream>(stream); }

// The bits of a handle that contain its HandleKind.
std::uintptr_t kind_of(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle) >> 48; }

class DeviceApi : public testing::Test {
 protected:
  void SetUp() override {
    options_.memory = "cuda";
    for (DeviceStream& stream : streams_) stream = rig_.make_stream();
    ASSERT_EQ(tutti_comm_create_all(kRanks, &options_, comms_), tutti_ok) << tutti_last_error(nullptr);
  }
  void TearDown() override {
    destroy(comms_);
    for (DeviceStream stream : streams_) rig_.destroy_stream(stream);
  }
  static void destroy(tutti_comm* comms) {
    EXPECT_EQ(tutti_group_start(), tutti_ok);
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(tutti_comm_destroy(comms[rank]), tutti_ok);
    EXPECT_EQ(tutti_group_end(), tutti_ok) << tutti_last_error(nullptr);
  }
  void synchronize() {
    for (DeviceStream stream : streams_) EXPECT_EQ(rig_.synchronize(stream).message(), "");
  }
  // All ranks in a group, all-reducing ones.
  void expect_sum(tutti_comm* comms, float wanted) {
    std::vector<float> buffers[kRanks];
    ASSERT_EQ(tutti_group_start(), tutti_ok);
    for (int rank = 0; rank < kRanks; ++rank) {
      buffers[rank].assign(kCount, 1);
      EXPECT_EQ(tutti_all_reduce(buffers[rank].data(), buffers[rank].data(), kCount, tutti_float32, tutti_sum,
                                 comms[rank], handle(streams_[rank])),
                tutti_ok);
    }
    ASSERT_EQ(tutti_group_end(), tutti_ok) << tutti_last_error(nullptr);
    synchronize();
    for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<float>(kCount, wanted));
  }

  DeviceRig& rig_ = current_rig();
  tutti_comm_options options_ = TUTTI_COMM_OPTIONS_DEFAULT;
  DeviceStream streams_[kRanks];
  tutti_comm comms_[kRanks] = {};
};

TEST_F(DeviceApi, GroupRunsAllRanksOfThread) {
  int device = -2;
  ASSERT_EQ(tutti_comm_device(comms_[1], &device), tutti_ok);
  size_t bytes = 0;
  ASSERT_EQ(tutti_comm_device_memory(comms_[1], &bytes), tutti_ok);
  EXPECT_GT(bytes, 0U);
  EXPECT_EQ(tutti_comm_device_memory(comms_[1], nullptr), tutti_invalid_argument);
  EXPECT_EQ(device, 0);
  expect_sum(comms_, kRanks);
  const char *algorithm = nullptr, *protocol = nullptr;
  ASSERT_EQ(tutti_comm_last_choice(comms_[1], &algorithm, &protocol), tutti_ok);
  EXPECT_STRNE(algorithm, "");
}

TEST_F(DeviceApi, CurrentDeviceReturnsNumber) {
  int device = -2;
  ASSERT_EQ(tutti_current_device(&device), tutti_ok);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(tutti_current_device(nullptr), tutti_invalid_argument);
}

TEST_F(DeviceApi, SynchronizeWaitsForCallsOfRank) {
  std::vector<float> buffers[kRanks];
  EXPECT_EQ(tutti_comm_synchronize(comms_[0]), tutti_ok);
  for (int rank = 0; rank < kRanks; ++rank) {
    buffers[rank].assign(kCount, 1);
    ASSERT_EQ(tutti_all_reduce(buffers[rank].data(), buffers[rank].data(), kCount, tutti_float32, tutti_sum,
                               comms_[rank], handle(streams_[rank])),
              tutti_ok);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(tutti_comm_synchronize(comms_[rank]), tutti_ok);
    EXPECT_EQ(buffers[rank], std::vector<float>(kCount, kRanks));
  }
  ASSERT_EQ(tutti_comm_abort(comms_[1]), tutti_ok);
  for (const int rank : {0, 2}) EXPECT_EQ(tutti_comm_synchronize(comms_[rank]), tutti_aborted);
}

TEST_F(DeviceApi, CallsReturnBeforePeersHaveCalled) {
  std::vector<float> buffers[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {  // One after the other in one thread: no call may wait for the next.
    buffers[rank].assign(kCount, static_cast<float>(rank));
    ASSERT_EQ(tutti_all_reduce(buffers[rank].data(), buffers[rank].data(), kCount, tutti_float32, tutti_sum,
                               comms_[rank], handle(streams_[rank])),
              tutti_ok);
  }
  synchronize();
  for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<float>(kCount, 3));
}

TEST_F(DeviceApi, AllToAllV) {
  std::vector<int> send[kRanks], recv[kRanks];
  ASSERT_EQ(tutti_group_start(), tutti_ok);
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<std::size_t> send_counts, send_at, recv_counts, recv_at;
    std::size_t sent = 0, received = 0;
    for (int peer = 0; peer < kRanks; ++peer) {  // Rank i sends 10 * i + j elements to rank j.
      send_counts.push_back(static_cast<std::size_t>(10 * rank + peer));
      recv_counts.push_back(static_cast<std::size_t>(10 * peer + rank));
      send_at.push_back(std::exchange(sent, sent + send_counts.back()));
      recv_at.push_back(std::exchange(received, received + recv_counts.back()));
    }
    recv[rank].assign(received, -1);
    for (int peer = 0; peer < kRanks; ++peer) send[rank].insert(send[rank].end(), send_counts[peer], 100 * rank + peer);
    ASSERT_EQ(tutti_all_to_all_v(send[rank].data(), send_counts.data(), send_at.data(), recv[rank].data(),
                                 recv_counts.data(), recv_at.data(), tutti_int32, comms_[rank], handle(streams_[rank])),
              tutti_ok);
  }
  ASSERT_EQ(tutti_group_end(), tutti_ok) << tutti_last_error(nullptr);
  synchronize();
  for (int rank = 0; rank < kRanks; ++rank) {
    std::size_t at = 0;
    for (int peer = 0; peer < kRanks; ++peer) {
      for (int i = 0; i < 10 * peer + rank; ++i) ASSERT_EQ(recv[rank][at++], 100 * peer + rank);
    }
  }
}

TEST_F(DeviceApi, SplitsAndViewsStayOnDevice) {
  tutti_comm parts[kRanks] = {};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_EQ(tutti_comm_split(comms_[rank], 0, -rank, nullptr, &parts[rank]), tutti_ok) << tutti_last_error(nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_sum(parts, kRanks);
  tutti_comm views[kRanks] = {};
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.channels = 4;
  tuning.algorithm = "ring";
  options.tuning = &tuning;
  for (int rank = 0; rank < kRanks; ++rank)
    ASSERT_EQ(tutti_comm_with_options(comms_[rank], &options, &views[rank]), tutti_ok) << tutti_last_error(nullptr);
  expect_sum(views, kRanks);
  destroy(parts);
}

// Neither the abort nor the end of a communicator concerns those that were split from it before.
TEST_F(DeviceApi, SplitsOfSplits_AfterFirstIsAborted) {
  tutti_unique_id id;
  ASSERT_EQ(tutti_get_unique_id(&id), tutti_ok);
  tutti_comm firsts[kRanks] = {}, seconds[kRanks] = {}, thirds[kRanks] = {};
  const auto on_all = [](const auto& call) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] { EXPECT_EQ(call(rank), tutti_ok) << tutti_last_error(nullptr); });
    for (std::thread& thread : threads) thread.join();
  };
  on_all([&](int rank) { return tutti_comm_create(&id, rank, kRanks, &options_, &firsts[rank]); });
  on_all([&](int rank) { return tutti_comm_split(firsts[rank], 0, 0, nullptr, &seconds[rank]); });
  on_all([&](int rank) { return tutti_comm_abort(firsts[rank]); });
  for (const bool ended : {false, true}) {
    if (ended)
      for (const tutti_comm first : firsts) (void)tutti_comm_destroy(first);
    on_all([&](int rank) { return tutti_comm_split(seconds[rank], 0, 0, nullptr, &thirds[rank]); });
    expect_sum(thirds, kRanks);
    destroy(thirds);
  }
  destroy(seconds);
}

TEST_F(DeviceApi, ShrinkStaysOnDevice) {
  tutti_comm parts[kRanks] = {};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_EQ(tutti_comm_shrink(comms_[rank], nullptr, 0, nullptr, &parts[rank]), tutti_ok)
          << tutti_last_error(nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int device = -2;
  ASSERT_EQ(tutti_comm_device(parts[1], &device), tutti_ok);
  EXPECT_EQ(device, 0);
  expect_sum(parts, kRanks);
  destroy(parts);
}

TEST_F(DeviceApi, ShrinkWaitsForCallsOfRank) {
  constexpr int kLooks = 3'000;  // How often the test checks that the forbidden event has not happened.
  const HostMemory memory = rig_.device().allocate_host(sizeof(std::uint32_t)).value();
  ASSERT_TRUE(rig_.device().hold_until(reinterpret_cast<std::uint32_t*>(memory.device), 1, streams_[0]).ok());
  std::vector<float> buffers[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    buffers[rank].assign(kCount, 1);
    ASSERT_EQ(tutti_all_reduce(buffers[rank].data(), buffers[rank].data(), kCount, tutti_float32, tutti_sum,
                               comms_[rank], handle(streams_[rank])),
              tutti_ok);
  }
  tutti_comm parts[kRanks] = {};
  std::atomic<int> returned = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_EQ(tutti_comm_shrink(comms_[rank], nullptr, 0, nullptr, &parts[rank]), tutti_ok);
      ++returned;
    });
  }
  for (int look = 0; look < kLooks && returned == 0; ++look) std::this_thread::yield();
  EXPECT_EQ(returned, 0);
  store_release(reinterpret_cast<std::uint32_t*>(memory.host), 1U);
  for (std::thread& thread : threads) thread.join();
  for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<float>(kCount, kRanks));
  destroy(parts);
  rig_.device().free_host(memory);
}

TEST_F(DeviceApi, ReductionUsesScalarOfItsCall) {
  std::vector<double> buffers[kRanks];
  ASSERT_EQ(tutti_group_start(), tutti_ok);
  for (int rank = 0; rank < kRanks; ++rank) {
    buffers[rank].assign(kCount, 1);
    const double factor = rank + 0.5;
    tutti_reduction reduction = 0;
    ASSERT_EQ(tutti_reduction_create_pre_mul_sum(&factor, tutti_float64, comms_[rank], &reduction), tutti_ok);
    ASSERT_EQ(tutti_all_reduce(buffers[rank].data(), buffers[rank].data(), kCount, tutti_float64, reduction,
                               comms_[rank], handle(streams_[rank])),
              tutti_ok);
    ASSERT_EQ(tutti_reduction_destroy(reduction, comms_[rank]), tutti_ok);
  }
  ASSERT_EQ(tutti_group_end(), tutti_ok);
  synchronize();
  for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<double>(kCount, 4.5));
}

// Outside a group a message to self would wait for itself, in a group for a call that is never made.
TEST_F(DeviceApi, MessagesToSelfMustShareGroup) {
  float values[2] = {1, 0};
  EXPECT_EQ(tutti_send(&values[0], 1, tutti_float32, 0, comms_[0], handle(streams_[0])), tutti_invalid_usage);
  ASSERT_EQ(tutti_group_start(), tutti_ok);
  EXPECT_EQ(tutti_send(&values[0], 1, tutti_float32, 0, comms_[0], handle(streams_[0])), tutti_ok);
  EXPECT_EQ(tutti_recv(&values[1], 1, tutti_float32, 0, comms_[0], handle(streams_[0])), tutti_ok);
  ASSERT_EQ(tutti_group_end(), tutti_ok);
  synchronize();
  EXPECT_EQ(values[1], 1);
}

TEST_F(DeviceApi, RejectsInvalidCalls_BeforeEnqueuing) {
  float value = 1;
  EXPECT_EQ(tutti_all_reduce(nullptr, &value, 1, tutti_float32, tutti_sum, comms_[0], handle(streams_[0])),
            tutti_invalid_argument);
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.memory = "host";
  tutti_comm view = nullptr;
  EXPECT_EQ(tutti_comm_with_options(comms_[0], &options, &view), tutti_invalid_argument);
  options.memory = "cuda:1";
  EXPECT_EQ(tutti_comm_create_all(1, &options, &view), tutti_invalid_argument);
  EXPECT_NE(std::string(tutti_last_error(nullptr)).find("invalid CUDA device 1; valid devices are 0 to 0"),
            std::string::npos)
      << tutti_last_error(nullptr);
  options.memory = "cuda:x";
  EXPECT_EQ(tutti_comm_create_all(1, &options, &view), tutti_invalid_argument);
  options.memory = "tape";
  EXPECT_EQ(tutti_comm_create_all(1, &options, &view), tutti_invalid_argument);
  EXPECT_NE(std::string(tutti_last_error(nullptr)).find("options.memory is \"tape\""), std::string::npos);
  expect_sum(comms_, kRanks);
}

TEST_F(DeviceApi, AllRanksRegisterWindow) {
  void* memory[kRanks] = {};
  tutti_window windows[kRanks] = {};
  const auto on_all = [&](const auto& call) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] { EXPECT_EQ(call(rank), tutti_ok) << tutti_last_error(nullptr); });
    }
    for (std::thread& thread : threads) thread.join();
  };
  for (void*& each : memory) ASSERT_EQ(tutti_mem_alloc_cuda(&each, kCount * sizeof(float)), tutti_ok);
  const auto show = [&](std::uint32_t flags) {
    on_all([&](int rank) {
      return tutti_window_register(memory[rank], kCount * sizeof(float), rank == 1 ? flags : TUTTI_WINDOW_SYMMETRIC,
                                   comms_[rank], &windows[rank]);
    });
  };
  show(0);
  for (tutti_window window : windows) EXPECT_EQ(window, nullptr) << "one does not promise";
  show(TUTTI_WINDOW_SYMMETRIC);
  for (tutti_window window : windows) EXPECT_NE(window, nullptr);
  tutti_request request = nullptr;
  std::uint8_t received = 0;
  ASSERT_EQ(tutti_irecv(&received, 1, tutti_uint8, 1, 7, comms_[0], &request), tutti_ok);
  EXPECT_NE(kind_of(windows[0]), kind_of(request));
  EXPECT_EQ(tutti_request_destroy(request), tutti_ok);
  EXPECT_EQ(tutti_window_deregister(windows[0], comms_[1]), tutti_invalid_argument);
  expect_sum(comms_, kRanks);
  on_all([&](int rank) { return tutti_window_deregister(windows[rank], comms_[rank]); });
  EXPECT_EQ(tutti_window_deregister(windows[0], comms_[0]), tutti_invalid_argument) << "twice";
  EXPECT_EQ(tutti_window_deregister(nullptr, comms_[0]), tutti_ok);
  for (void* each : memory) EXPECT_EQ(tutti_mem_free(each), tutti_ok);
}

TEST_F(DeviceApi, RejectsInvalidWindows) {
  tutti_window window = nullptr;
  float value = 0;
  EXPECT_EQ(tutti_window_register(nullptr, 4, 0, comms_[0], &window), tutti_invalid_argument);
  EXPECT_EQ(tutti_window_register(&value, 0, 0, comms_[0], &window), tutti_invalid_argument);
  EXPECT_EQ(tutti_window_register(&value, 4, 2, comms_[0], &window), tutti_invalid_argument);
  EXPECT_EQ(tutti_window_register(&value, 4, 0, comms_[0], nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_window_register(&value, 4, 0, nullptr, &window), tutti_invalid_argument);
  ASSERT_EQ(tutti_group_start(), tutti_ok);
  EXPECT_EQ(tutti_window_register(&value, 4, 0, comms_[0], &window), tutti_invalid_usage);
  EXPECT_EQ(tutti_group_end(), tutti_ok);
}

TEST_F(DeviceApi, AbortIsReportedToAllRanks) {
  std::vector<float> buffer(kCount, 1);
  ASSERT_EQ(
      tutti_all_reduce(buffer.data(), buffer.data(), kCount, tutti_float32, tutti_sum, comms_[0], handle(streams_[0])),
      tutti_ok);
  ASSERT_EQ(tutti_comm_abort(comms_[2]), tutti_ok);
  synchronize();
  tutti_status error = tutti_ok;
  ASSERT_EQ(tutti_comm_async_error(comms_[0], &error), tutti_ok);
  EXPECT_EQ(error, tutti_aborted);
  EXPECT_EQ(
      tutti_all_reduce(buffer.data(), buffer.data(), kCount, tutti_float32, tutti_sum, comms_[1], handle(streams_[1])),
      tutti_aborted);
}

}  // namespace
}  // namespace tutti::test
