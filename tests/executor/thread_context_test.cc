// The CUDA context of a thread during and after calls of the library: with a fake driver, and with the real one if
// there is a GPU.
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

// Context n is the primary one of device n, 100 + n another one of it. Each test has its own devices, since retained
// contexts stay retained.
struct FakeDriver {
  std::vector<std::uintptr_t> stack;
  int retained = 0;
  bool pushes = true;
};
thread_local FakeDriver fake_driver;

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }

CUresult get_current(CUcontext* current) {
  *current = fake_driver.stack.empty() ? nullptr : context(fake_driver.stack.back());
  return CUDA_SUCCESS;
}
CUresult get_device(CUdevice* device) {
  *device = static_cast<CUdevice>(fake_driver.stack.back() % 100);
  return CUDA_SUCCESS;
}
CUresult push(CUcontext pushed) {
  if (!fake_driver.pushes) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  fake_driver.stack.push_back(reinterpret_cast<std::uintptr_t>(pushed));
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext* popped) {
  *popped = context(fake_driver.stack.back());
  fake_driver.stack.pop_back();
  return CUDA_SUCCESS;
}
CUresult find(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult retain(CUcontext* retained, CUdevice device) {
  ++fake_driver.retained;
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
const Driver kFakeDriver = {.find = find_played};
const Driver kNoDriver = {.find = [](const char*) -> void* { return nullptr; }};

using Stack = std::vector<std::uintptr_t>;

class ThreadContextOnFakeDriver : public testing::Test {
 protected:
  void SetUp() override { fake_driver = {}; }
};

TEST_F(ThreadContextOnFakeDriver, RestoresNoContext_WhenThreadHadNone) {
  for (int time = 0; time < 2; ++time) {
    {
      const ThreadContext here(kFakeDriver, 11);
      EXPECT_TRUE(here.holds());
      EXPECT_EQ(fake_driver.stack, Stack{11});
    }
    EXPECT_EQ(fake_driver.stack, Stack{});
  }
  EXPECT_EQ(fake_driver.retained, 1);
}

TEST_F(ThreadContextOnFakeDriver, RestoresContextOfAnotherDevice) {
  fake_driver.stack = {12};
  {
    const ThreadContext here(kFakeDriver, 13);
    EXPECT_EQ(fake_driver.stack, (Stack{12, 13}));
    const ThreadContext back(kFakeDriver, 12);
    EXPECT_EQ(fake_driver.stack, (Stack{12, 13, 12}));
  }
  EXPECT_EQ(fake_driver.stack, Stack{12});
}

TEST_F(ThreadContextOnFakeDriver, KeepsProgramsOwnContextOfDevice) {
  fake_driver.stack = {114};
  const ThreadContext here(kFakeDriver, 14);
  EXPECT_TRUE(here.holds());
  EXPECT_EQ(fake_driver.stack, Stack{114});
  EXPECT_EQ(fake_driver.retained, 0) << "a primary one besides would cost memory";
}

TEST_F(ThreadContextOnFakeDriver, ReportsDriverFailure) {
  fake_driver.pushes = false;
  {
    const ThreadContext here(kFakeDriver, 15);
    EXPECT_FALSE(here.holds());
  }
  EXPECT_FALSE(ThreadContext(kNoDriver, 16).holds());
  EXPECT_FALSE(ThreadContext(kFakeDriver, 1'000'000).holds());
  EXPECT_EQ(fake_driver.stack, Stack{});
}

CUcontext current_context() {
  CUcontext current = nullptr;
  EXPECT_TRUE(driver().get_context(&current).ok());
  return current;
}

TEST(ThreadContextOnGpu, RestoresNoContext_WhenThreadHadNone) {
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

TEST(ThreadContextOnGpu, TreatsDefaultStreamBesideCaptureAsError) {
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
