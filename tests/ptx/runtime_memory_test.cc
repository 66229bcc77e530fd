// Memory, peer access and contexts of the CUDA stand-in, on two devices.
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/ptx/runtime_gate.h"

namespace tutti::test {
namespace {

class PtxMemory : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cudaSetDevice(0), cudaSuccess); }
  void TearDown() override { cudaGetLastError(); }
};

cudaPointerAttributes attributes_of(const void* memory) {
  cudaPointerAttributes attributes = {};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  return attributes;
}

TEST_F(PtxMemory, DescribesPointers) {
  std::byte *device = nullptr, *pinned = nullptr, *managed = nullptr;
  std::vector<std::byte> registered(8192);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), 1000), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 1000), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(reinterpret_cast<void**>(&managed), 1000, cudaMemAttachGlobal), cudaSuccess);
  EXPECT_EQ(attributes_of(registered.data()).type, cudaMemoryTypeUnregistered);
  ASSERT_EQ(cudaHostRegister(registered.data(), 4096, cudaHostRegisterMapped), cudaSuccess);
  EXPECT_EQ(attributes_of(device + 999).type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes_of(device + 999).device, 1);
  EXPECT_EQ(attributes_of(device).hostPointer, nullptr);
  EXPECT_EQ(attributes_of(device + 1000).type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(attributes_of(pinned).type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes_of(managed).type, cudaMemoryTypeManaged);
  EXPECT_EQ(attributes_of(&registered[4095]).type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes_of(&registered[4096]).type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device) % 256, 0U);
  EXPECT_EQ(cudaHostUnregister(registered.data()), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(PtxMemory, RejectsWrongArguments) {
  std::byte* memory = nullptr;
  std::vector<std::byte> host(8192);
  EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), std::size_t{1} << 60), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 100), cudaSuccess);
  EXPECT_EQ(cudaFree(memory + 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue) << "freed twice";
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  ASSERT_EQ(cudaHostRegister(host.data(), 4096, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(host.data() + 100, 5000, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostUnregister(host.data() + 100), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

// Virtual memory belongs to the device until its handle is released and its mapping removed.
TEST_F(PtxMemory, CountsAllocationsOfDevice) {
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  const std::size_t before = free_bytes();
  void* plain = nullptr;
  ASSERT_EQ(cudaMalloc(&plain, kBytes), cudaSuccess);
  EXPECT_LE(free_bytes() + kBytes, before);
  EXPECT_EQ(cudaFree(plain), cudaSuccess);
  EXPECT_EQ(free_bytes(), before);

  CUmemAllocationProp wanted = {};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  auto* const create = driver_function<decltype(cuMemCreate)>("cuMemCreate");
  EXPECT_EQ(create(&handle, before + kBytes, &wanted, 0), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(create(&handle, kBytes, &wanted, 0), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes() + kBytes, before);
  ASSERT_EQ(driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&address, kBytes, 0, 0, 0), 0);
  ASSERT_EQ(driver_function<decltype(cuMemMap)>("cuMemMap")(address, kBytes, 0, handle, 0), 0);
  EXPECT_EQ(driver_function<decltype(cuMemRelease)>("cuMemRelease")(handle), 0);
  EXPECT_EQ(free_bytes() + kBytes, before);
  EXPECT_EQ(driver_function<decltype(cuMemUnmap)>("cuMemUnmap")(address, kBytes), 0);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree")(address, kBytes), 0);
}

TEST_F(PtxMemory, WaitsForDevice_BeforeFree) {
  StreamHold gate;
  OwnedStream stream;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  gate.hold(stream);
  std::atomic<bool> freed = false;
  std::thread freeing([&] {
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    freed = true;
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(freed);
    std::this_thread::yield();
  }
  gate.open();
  freeing.join();
}

TEST_F(PtxMemory, EnablesPeerAccessOnce) {
  int can = 0;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 0), cudaSuccess);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaErrorInvalidDevice);
}

TEST_F(PtxMemory, KeepsContextsByThread) {
  auto* const current = driver_function<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent");
  auto* const push = driver_function<decltype(cuCtxPushCurrent)>("cuCtxPushCurrent");
  auto* const pop = driver_function<decltype(cuCtxPopCurrent)>("cuCtxPopCurrent");
  auto* const retain = driver_function<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain");
  std::thread([&] {
    CUcontext context = nullptr, primary = nullptr;
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(current(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, nullptr) << "asking has made a context";
    EXPECT_EQ(pop(&context), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(retain(&primary, 1), CUDA_SUCCESS);
    EXPECT_EQ(push(primary), CUDA_SUCCESS);
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 1);
    EXPECT_EQ(pop(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, primary);
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(current(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, nullptr);
  }).join();
}

TEST_F(PtxMemory, ReportsUnknownDriverFunctions) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &found, 12000, cudaEnableDefault, &result),
            cudaSuccess);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
}

}  // namespace
}  // namespace tutti::test

namespace {

// The stand-in reads the environment at its first call.
const bool two_devices = ::setenv("TUTTI_PTX_DEVICES", "2", 1) == 0;

}  // namespace
