// A GPU as a Device, by the CUDA runtime: memory, events and launches. The kernel is in kernel.cu.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "src/executor/cuda/calls.h"
#include "src/executor/cuda/cuda_memory.h"
#include "src/executor/cuda/foreign_memory.h"
#include "src/executor/cuda/host_pages.h"
#include "src/executor/cuda/launch_attributes.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

inline cudaStream_t as_stream(DeviceStream stream) { return static_cast<cudaStream_t>(stream); }

class CudaDevice final : public Device {
 public:
  // Fails if the device cannot run the kernel.
  static Result<std::shared_ptr<Device>> make(int ordinal);

  const DeviceTraits& traits() const override { return traits_; }

  Result<std::byte*> allocate(std::size_t bytes) override;
  Result<std::byte*> allocate_private(std::size_t bytes) override;
  Result<std::byte*> allocate_shared(std::size_t bytes) override;
  Result<std::byte*> allocate_for_domain(std::size_t bytes) override;
  void free(std::byte* memory) override;
  void recycle(std::byte* memory) override;
  void set_aside(std::byte* memory) override { memory_.set_aside(memory); }
  void free_kept() override;
  bool holds(const std::byte* memory) const override {
    const OnDevice here(ordinal_);
    return is_memory(cudaMemoryTypeDevice, memory);
  }
  Status upload(std::byte* to, std::span<const std::byte> from) override;

  Result<HostMemory> allocate_host(std::size_t bytes) override;
  void free_host(const HostMemory& memory) override;
  Result<HostMemory> map_host(std::byte* memory, std::size_t bytes) override;
  void unmap_host(const HostMemory& memory) override;

  Result<File> dma_buf_of(std::byte* memory, std::size_t bytes) override;

  DeviceDistance distance_to(const DeviceIdentity& peer) const override;
  Status enable_peer_access(const Device& peer) override;

  Result<DeviceShare> share_of(std::byte* memory, std::size_t bytes, File& file) override;
  Result<std::byte*> open(const DeviceShare& share, const File& file) override;
  void close(std::byte* memory) override;

  Result<std::unique_ptr<DeviceMulticast>> create_multicast(std::byte* memory, std::uint32_t devices) override;
  Result<std::unique_ptr<DeviceMulticast>> open_multicast(std::byte* memory, const DeviceShare& share,
                                                          const File& file) override;
  Result<std::byte*> bind(DeviceMulticast& object, std::byte* memory) override;

  Result<std::unique_ptr<DeviceEvent>> make_event() override;
  Result<std::unique_ptr<DeviceTimer>> make_timer() override;
  Result<std::uint64_t> capture_of(DeviceStream stream) override;
  Status keep_for_graph(DeviceStream stream, std::shared_ptr<void> kept) override;

  Status launch(const DeviceLaunch& launch, DeviceStream stream) override;
  Status copy(std::byte* to, const std::byte* from, std::size_t bytes, DeviceStream stream) override;
  bool is_default(DeviceStream stream) const override;
  Status apply_residual(const ResidualTask& task, DeviceStream stream) override;
  Status put_word(std::uint32_t* word, std::uint32_t value, DeviceStream stream) override;
  Status hold_until(const std::uint32_t* word, std::uint32_t value, DeviceStream stream) override;
  Result<DeviceStream> make_queue() override;
  void drop_queue(DeviceStream queue) override;

 private:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal), memory_(ordinal) {}

  Status make_stream(cudaStream_t& stream);
  Status make_queues();
  Status find_traits();
  Status prepare_kernel();
  Status run_kernels_once();
  Status check(cudaError_t error, const char* call) const { return cuda_status(error, call, traits_.name); }
  // Zeroes memory that was just allocated. Returns it to the cache if this fails.
  Result<std::byte*> zeroed(std::byte* memory, std::size_t bytes);

  const int ordinal_;
  DeviceTraits traits_;
  LaunchAttributes attributes_;
  ForeignMemory foreign_;
  CudaMemory memory_;
  std::mutex mutex_;  // Guards opened_ and kept_host_.
  std::map<std::byte*, VirtualMemory> opened_;
  std::vector<HostMemory> kept_host_;  // One page each.
  // Created with the device, since creating or destroying a stream may wait for blocked streams. Handed out
  // round-robin.
  std::array<cudaStream_t, 4> queues_ = {};
  std::atomic<std::size_t> queues_given_{0};
  cudaStream_t stream_ = nullptr;  // For memset and upload; not synchronised with other streams.
};

}  // namespace tutti
