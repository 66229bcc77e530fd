#include "src/executor/cuda/cuda_memory.h"

#include <cuda_runtime.h>

#include <atomic>
#include <iterator>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "src/executor/cuda/calls.h"

namespace tutti {
namespace {

std::atomic<int> devices_used = 0;  // By this process.

}  // namespace

CudaMemory::CudaMemory(int ordinal) : ordinal_(ordinal) { ++devices_used; }
CudaMemory::~CudaMemory() { --devices_used; }

Result<std::byte*> CudaMemory::take(std::size_t bytes) {
  if (std::byte* kept = take_free({bytes})) return kept;
  void* memory = nullptr;
  const std::string call = "cudaMalloc of " + std::to_string(bytes) + " bytes";
  TUTTI_CHECK_OK(cuda_status(cudaMalloc(&memory, bytes), call.c_str(), "device " + std::to_string(ordinal_)));
  const std::lock_guard lock(mutex_);
  taken_[static_cast<std::byte*>(memory)].bytes = bytes;
  return static_cast<std::byte*>(memory);
}

Result<std::byte*> CudaMemory::take_private(std::size_t bytes) {
  if (std::byte* kept = take_free({bytes, false, true})) return kept;
  if (devices_used == 1 || !VirtualMemory::offered(ordinal_)) return take(bytes);
  auto made = VirtualMemory::create_private(ordinal_, bytes);
  if (!made.ok()) {
    log(LogLevel::info, "allocations of device %d may wait for kernels of other devices: %s", ordinal_,
        std::move(made).status().message().c_str());
    return take(bytes);
  }
  std::byte* memory = made.value().data();
  const std::lock_guard lock(mutex_);
  taken_[memory] = {bytes, {}, std::move(made).value()};
  return memory;
}

// Some sandboxes and old drivers create such memory, but cannot export it.
Result<std::byte*> CudaMemory::take_shared(std::size_t bytes, File& file) {
  if (!VirtualMemory::offers_files(ordinal_)) return take(bytes);
  auto exported = take_exported(bytes, file);
  if (exported.ok()) return exported;
  log(LogLevel::info, "memory of device %d is shared by CUDA IPC: %s", ordinal_,
      std::move(exported).status().message().c_str());
  return take(bytes);
}

Result<std::byte*> CudaMemory::take_exported(std::size_t bytes, File& file) {
  std::byte* memory = take_free({bytes, true});
  if (memory == nullptr) memory = add_shared(bytes, TUTTI_TRY(VirtualMemory::create(ordinal_, bytes, ShareKind::file)));
  Status exported = share_of(memory, bytes, file).status();
  if (exported.ok()) return memory;
  free(memory);
  return exported;
}

Result<std::byte*> CudaMemory::take_for_domain(std::size_t bytes) {
  if (std::byte* kept = take_free({bytes, true, false, true})) return kept;
  if (!VirtualMemory::offers_fabric_handles(ordinal_)) return unsupported("the device has no fabric handles");
  return add_shared(bytes, TUTTI_TRY(VirtualMemory::create(ordinal_, bytes, ShareKind::fabric)));
}

std::byte* CudaMemory::add_shared(std::size_t bytes, VirtualMemory made) {
  std::byte* const memory = made.data();
  const std::lock_guard lock(mutex_);
  taken_[memory] = {bytes, std::move(made), {}};
  return memory;
}

Result<DeviceShare> CudaMemory::share_of(std::byte* memory, std::size_t bytes, File& file) {
  const std::lock_guard lock(mutex_);
  const auto behind = taken_.upper_bound(memory);
  if (behind == taken_.begin()) return DeviceShare();
  const auto& [begin, taken] = *std::prev(behind);
  if (taken.shared.data() == nullptr || memory + bytes > begin + taken.bytes) return DeviceShare();
  DeviceShare share = TUTTI_TRY(taken.shared.share(taken.bytes, file));
  share.offset = static_cast<std::uint64_t>(memory - begin);
  return share;
}

std::byte* CudaMemory::take_free(const FreeList::Kind& kind) {
  const std::lock_guard lock(mutex_);
  return kept_.take(kind);
}

void CudaMemory::keep(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  kept_.keep(memory, kind_of(taken_.at(memory)));
}

void CudaMemory::set_aside(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  kept_.set_aside(memory, kind_of(taken_.at(memory)));
}

void CudaMemory::free(std::byte* memory) {
  Taken ended;
  {
    const std::lock_guard lock(mutex_);
    const auto taken = taken_.find(memory);
    ended = std::move(taken->second);
    taken_.erase(taken);
  }
  const bool plain = ended.shared.data() == nullptr && ended.of_device.data() == nullptr;
  if (plain && cudaFree(memory) != cudaSuccess) cudaGetLastError();
}

void CudaMemory::free_kept() {
  std::vector<std::byte*> all;
  {
    const std::lock_guard lock(mutex_);
    all = kept_.take_freeable();
  }
  for (std::byte* memory : all) free(memory);
}

}  // namespace tutti
