// Device memory for other processes, with stand-ins for the CUDA runtime and the driver's virtual memory.
#include "src/executor/cuda/cuda_memory.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "src/executor/cuda/calls.h"

namespace {

// Allocations of the stand-ins, whether virtual memory can be created, and whether it can be exported.
struct System {
  bool creates = true, exports = true;
  std::set<void*> plain, shared;
};
System& the_system() {
  static System made;
  return made;
}

}  // namespace

extern "C" cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  the_system().plain.insert(*memory = std::malloc(bytes));
  return cudaSuccess;
}

extern "C" cudaError_t cudaFree(void* memory) {
  if (the_system().plain.erase(memory) == 0) return cudaErrorInvalidValue;
  std::free(memory);
  return cudaSuccess;
}

extern "C" cudaError_t cudaGetLastError() { return cudaSuccess; }

namespace tutti {

Status cuda_status(cudaError_t error, const char* call, const std::string& device) {
  return error == cudaSuccess ? Status() : system_error(std::string(call) + " on " + device);
}

bool VirtualMemory::offered(int) { return true; }
bool VirtualMemory::offers_files(int) { return true; }
bool VirtualMemory::offers_fabric_handles(int) { return true; }

Result<VirtualMemory> VirtualMemory::create_private(int ordinal, std::size_t bytes) {
  if (!the_system().creates) return unsupported("cuMemCreate: not permitted");
  return create(ordinal, bytes, ShareKind::handle);
}

Result<VirtualMemory> VirtualMemory::create(int, std::size_t bytes, ShareKind kind) {
  VirtualMemory memory;
  memory.kind_ = kind;
  memory.address_ = reinterpret_cast<unsigned long long>(std::malloc(bytes));
  the_system().shared.insert(memory.data());
  return memory;
}

VirtualMemory& VirtualMemory::operator=(VirtualMemory&& other) noexcept {
  release();
  address_ = std::exchange(other.address_, 0);
  kind_ = other.kind_;
  return *this;
}

Result<DeviceShare> VirtualMemory::share(std::size_t bytes, File& file) const {
  if (!the_system().exports) return unsupported("cuMemExportToShareableHandle: not permitted");
  if (kind_ == ShareKind::file) file = File(::dup(0));
  return DeviceShare{.allocated_bytes = bytes, .kind = kind_};
}

void VirtualMemory::release() {
  if (address_ == 0) return;
  the_system().shared.erase(data());
  std::free(data());
}

namespace test {
namespace {

TEST(CudaMemory, IsExportedAsFile) {
  CudaMemory memory(0);
  File file;
  auto taken = memory.take_shared(100, file);
  ASSERT_TRUE(taken.ok());
  EXPECT_TRUE(static_cast<bool>(file));
  EXPECT_TRUE(the_system().shared.contains(taken.value()));
  memory.free(taken.value());
}

TEST(CudaMemory, IsPlain_WhenProcessUsesOneDevice) {
  CudaMemory memory(0);
  std::byte* const only = memory.take_private(100).value();
  EXPECT_TRUE(the_system().plain.contains(only));
  memory.free(only);
}

// Private memory that was kept serves later requests for private memory only.
TEST(CudaMemory, IsPrivate_WhenProcessUsesSeveralDevices) {
  CudaMemory memory(0);
  const CudaMemory other(1);
  std::byte* const first = memory.take_private(100).value();
  EXPECT_TRUE(the_system().shared.contains(first));
  memory.keep(first);
  std::byte* const plain = memory.take(100).value();
  EXPECT_TRUE(the_system().plain.contains(plain));
  EXPECT_EQ(memory.take_private(100).value(), first);
  memory.free(first);
  memory.free(plain);
  EXPECT_TRUE(the_system().shared.empty());
  the_system().creates = false;
  std::byte* const instead = memory.take_private(100).value();
  EXPECT_TRUE(the_system().plain.contains(instead));
  memory.free(instead);
  EXPECT_TRUE(the_system().plain.empty());
  the_system().creates = true;
}

TEST(CudaMemory, IsReusedForOtherHosts_IfTheyCouldOpenIt) {
  CudaMemory memory(0);
  std::byte* const first = memory.take_for_domain(100).value();
  File file;
  const DeviceShare share = memory.share_of(first + 10, 20, file).value();
  EXPECT_EQ(share.kind, ShareKind::fabric);
  EXPECT_EQ(share.offset, 10U);
  EXPECT_EQ(share.allocated_bytes, 100U);
  EXPECT_FALSE(static_cast<bool>(file));
  memory.keep(first);
  std::byte* const by_file = memory.take_shared(100, file).value();
  EXPECT_NE(by_file, first);
  memory.keep(by_file);
  EXPECT_EQ(memory.take_for_domain(100).value(), first);
  memory.keep(first);
  memory.free_kept();
  EXPECT_TRUE(the_system().shared.empty());
}

// In some containers, the export fails although the device supports it. CUDA IPC then shares plain memory.
TEST(CudaMemory, IsPlain_WhenExportFails) {
  CudaMemory memory(0);
  {
    File file;
    memory.keep(memory.take_shared(100, file).value());  // Later requests could get this memory again.
  }
  the_system().exports = false;
  for (int i = 0; i < 2; ++i) {
    File file;
    auto taken = memory.take_shared(100, file);
    ASSERT_TRUE(taken.ok()) << std::move(taken).status().message();
    EXPECT_FALSE(static_cast<bool>(file));
    EXPECT_TRUE(the_system().plain.contains(taken.value()));
    EXPECT_TRUE(the_system().shared.empty()) << "memory that cannot be exported is freed";
    memory.free(taken.value());
  }
  EXPECT_TRUE(the_system().plain.empty());
  the_system().exports = true;
}

}  // namespace
}  // namespace test
}  // namespace tutti
