// Whose device a thread's calls of CUDA are for, and what a thread is left with: on a driver that is played, and on the
// real one where there is a GPU.
#include "src/executor/cuda/thread_context.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "src/executor/thread_block/device.h"

namespace tutti::test {
namespace {

// Context n is the primary one of device n, 100 + n another one of it. Each test has devices of its own: what is
// retained stays so.
struct Played {
  std::vector<std::uintptr_t> stack;
  int retained = 0;
  bool pushes = true;
};
thread_local Played played;

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }

CUresult get_current(CUcontext* current) {
  *current = played.stack.empty() ? nullptr : context(played.stack.back());
  return CUDA_SUCCESS;
}
CUresult get_device(CUdevice* device) {
  *device = static_cast<CUdevice>(played.stack.back() % 100);
  return CUDA_SUCCESS;
}
CUresult push(CUcontext pushed) {
  if (!played.pushes) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  played.stack.push_back(reinterpret_cast<std::uintptr_t>(pushed));
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext* popped) {
  *popped = context(played.stack.back());
  played.stack.pop_back();
  return CUDA_SUCCESS;
}
CUresult find(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult retain(CUcontext* retained, CUdevice device) {
  ++played.retained;
  *retained = context(static_cast<std::uintptr_t>(device));
  return CUDA_SUCCESS;
}

void* find_played(const char* name) {
  const std::map<std::string_view, void*> functions = {{"cuCtxGetCurrent", reinterpret_cast<void*>(get_current)},
                                                       {"cuCtxGetDevice", reinterpret_cast<void*>(get_device)},
                                                       {"cuCtxPushCurrent", reinterpret_cast<void*>(push)},
                                                       {"cuCtxPopCurrent", reinterpret_cast<void*>(pop)},
                                                       {"cuDeviceGet", reinterpret_cast<void*>(find)},
                                                       {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(retain)}};
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}
const Driver kPlayed = {.find = find_played};
const Driver kNoDriver = {.find = [](const char*) -> void* { return nullptr; }};

using Stack = std::vector<std::uintptr_t>;

class OnAPlayedDriver : public testing::Test {
 protected:
  void SetUp() override { played = {}; }
};

TEST_F(OnAPlayedDriver, LeavesAThreadWithoutAContextWithout) {
  for (int time = 0; time < 2; ++time) {
    {
      const ThreadContext here(kPlayed, 11);
      EXPECT_TRUE(here.holds());
      EXPECT_EQ(played.stack, Stack{11});
    }
    EXPECT_EQ(played.stack, Stack{});
  }
  EXPECT_EQ(played.retained, 1);
}

TEST_F(OnAPlayedDriver, GivesBackTheContextOfAnotherDevice) {
  played.stack = {12};
  {
    const ThreadContext here(kPlayed, 13);
    EXPECT_EQ(played.stack, (Stack{12, 13}));
    const ThreadContext back(kPlayed, 12);
    EXPECT_EQ(played.stack, (Stack{12, 13, 12}));
  }
  EXPECT_EQ(played.stack, Stack{12});
}

TEST_F(OnAPlayedDriver, LeavesTheProgramsOwnContextOfTheDeviceThere) {
  played.stack = {114};
  const ThreadContext here(kPlayed, 14);
  EXPECT_TRUE(here.holds());
  EXPECT_EQ(played.stack, Stack{114});
  EXPECT_EQ(played.retained, 0) << "a primary one besides would cost memory";
}

TEST_F(OnAPlayedDriver, SaysWhenTheDriverWouldNot) {
  played.pushes = false;
  {
    const ThreadContext here(kPlayed, 15);
    EXPECT_FALSE(here.holds());
  }
  EXPECT_FALSE(ThreadContext(kNoDriver, 16).holds());
  EXPECT_FALSE(ThreadContext(kPlayed, 1'000'000).holds());
  EXPECT_EQ(played.stack, Stack{});
}

CUcontext current_context() {
  CUcontext current = nullptr;
  EXPECT_TRUE(driver().get_context(&current).ok());
  return current;
}

TEST(OnAGpu, ThreadsWithoutAContextHaveNoneAfterCalls) {
  const auto device = find_device();
  if (!device.ok()) GTEST_SKIP() << "there is no GPU";
  ASSERT_TRUE(driver().pushes_contexts());
  std::thread([&] {
    int before = -1, after = -1;
    EXPECT_EQ(cudaGetDevice(&before), cudaSuccess);
    ASSERT_EQ(current_context(), nullptr);
    std::byte* memory = device.value()->allocate(4096).value();
    device.value()->free(memory);
    EXPECT_EQ(current_context(), nullptr);
    EXPECT_EQ(cudaGetDevice(&after), cudaSuccess);
    EXPECT_EQ(after, before);
  }).join();
}

TEST(OnAGpu, TheDefaultStreamBesideACaptureIsAQuestion) {
  const auto device = find_device();
  if (!device.ok()) GTEST_SKIP() << "there is no GPU";
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal), cudaSuccess);
  const Status status = device.value()->capture_of(nullptr).status();
  EXPECT_EQ(status.code(), Code::invalid_usage);
  EXPECT_NE(status.message().find("in the default stream"), std::string::npos) << status.message();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaSuccess) << "it goes on";
  cudaGraphDestroy(graph);
  cudaStreamDestroy(blocking);
}

}  // namespace
}  // namespace tutti::test
