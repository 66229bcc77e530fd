#include "src/executor/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "src/base/config.h"
#include "src/base/pages.h"
#include "src/executor/cuda/cuda_event.h"
#include "src/executor/cuda/nvml.h"

namespace tutti {
namespace {

CUdeviceptr as_address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

// CUDA_DEVICE_MAX_CONNECTIONS, as the driver interprets it: default 8, maximum 32. The driver reads it once.
std::uint32_t hardware_queues() {
  const int requested = std::atoi(environment().get("CUDA_DEVICE_MAX_CONNECTIONS").value_or("8").c_str());
  return static_cast<std::uint32_t>(std::clamp(requested, 1, 32));
}

// Context for errors of stream memory operations, which are needed only if processes share the GPU without MPS.
std::string in_stream_of(const DeviceTraits& device) {
  return "in a stream of " + device.name + ", which processes share without MPS (nvidia-cuda-mps-control -d)";
}

}  // namespace

Result<std::shared_ptr<Device>> CudaDevice::make(int ordinal) {
  const OnDevice here(ordinal);
  std::shared_ptr<CudaDevice> device(new CudaDevice(ordinal));
  TUTTI_CHECK_OK(device->find_traits());
  TUTTI_CHECK_OK(device->prepare_kernel());
  TUTTI_CHECK_OK(device->make_stream(device->stream_));
  TUTTI_CHECK_OK(device->make_queues());
  TUTTI_CHECK_OK(device->run_kernels_once());
  return std::shared_ptr<Device>(std::move(device));
}

// Creates a stream of the highest priority. Streams of equal priority may share a hardware queue. Uploads queued behind
// thread blocks that wait for these uploads would deadlock.
Status CudaDevice::make_stream(cudaStream_t& stream) {
  int lowest = 0, highest = 0;
  TUTTI_CHECK_OK(check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange"));
  return check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest), "cudaStreamCreateWithPriority");
}

Status CudaDevice::make_queues() {
  for (cudaStream_t& queue : queues_) TUTTI_CHECK_OK(make_stream(queue));
  return {};
}

Status CudaDevice::find_traits() {
  traits_.ordinal = static_cast<std::uint32_t>(ordinal_);
  traits_.name = "device " + std::to_string(ordinal_);
  cudaDeviceProp properties;
  TUTTI_CHECK_OK(check(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties"));
  traits_.name = std::string(properties.name) + " (device " + std::to_string(ordinal_) + ")";
  static_assert(sizeof properties.uuid == sizeof traits_.identity);
  std::memcpy(traits_.identity.data(), &properties.uuid, sizeof properties.uuid);
  std::array<char, 32> bus_id{};
  TUTTI_CHECK_OK(
      check(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), ordinal_), "cudaDeviceGetPCIBusId"));
  traits_.bus_id = bus_id.data();
  int cooperative = 0;
  TUTTI_CHECK_OK(check(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, ordinal_),
                       "cudaDeviceGetAttribute(CooperativeLaunch)"));
  if (cooperative == 0)
    return unsupported(traits_.name + " does not support cooperative launches, which ranks that share a GPU need");
  int mps = 0;
  if (cudaDeviceGetAttribute(&mps, cudaDevAttrMpsEnabled, ordinal_) != cudaSuccess) cudaGetLastError();  // Old driver.
  traits_.queues = hardware_queues();
  int ordering = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE;  // Also if the driver does not know the attribute.
  (void)driver().attribute(&ordering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, ordinal_);
  traits_.orders_writes = ordering >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
  const Nvml* nvml = VirtualMemory::offers_fabric_handles(ordinal_) ? Nvml::of_process() : nullptr;
  if (nvml != nullptr) traits_.domain = nvml->domain(traits_.identity);
  traits_.sharing = mps != 0 ? ComputeSharing::all_processes : ComputeSharing::one_process;
  return {};
}

Result<std::byte*> CudaDevice::zeroed(std::byte* memory, std::size_t bytes) {
  Status done = check(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync");
  if (done.ok()) done = check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  if (done.ok()) return memory;
  recycle(memory);
  return done;
}

Result<std::byte*> CudaDevice::allocate(std::size_t bytes) {
  const OnDevice here(ordinal_);
  return zeroed(TUTTI_TRY(memory_.take(bytes)), bytes);
}

Result<std::byte*> CudaDevice::allocate_private(std::size_t bytes) {
  const OnDevice here(ordinal_);
  return zeroed(TUTTI_TRY(memory_.take_private(bytes)), bytes);
}

Result<std::byte*> CudaDevice::allocate_shared(std::size_t bytes) {
  const OnDevice here(ordinal_);
  File file;  // Exported again by share_of().
  return zeroed(TUTTI_TRY(memory_.take_shared(bytes, file)), bytes);
}

Result<std::byte*> CudaDevice::allocate_for_domain(std::size_t bytes) {
  const OnDevice here(ordinal_);
  return zeroed(TUTTI_TRY(memory_.take_for_domain(bytes)), bytes);
}

void CudaDevice::recycle(std::byte* memory) { memory_.keep(memory); }

void CudaDevice::free_kept() {
  const OnDevice here(ordinal_);
  memory_.free_kept();
}

void CudaDevice::free(std::byte* memory) {
  const OnDevice here(ordinal_);
  memory_.free(memory);
}

Status CudaDevice::upload(std::byte* to, std::span<const std::byte> from) {
  const OnDevice here(ordinal_);
  TUTTI_CHECK_OK(
      check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync"));
  return check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

// Short requests get a page of their own. Freed pages are cached, because cudaFreeHost() would wait for the device.
Result<HostMemory> CudaDevice::allocate_host(std::size_t bytes) {
  const OnDevice here(ordinal_);
  const std::size_t room = std::max(bytes, kPageBytes);
  if (room == kPageBytes) {
    const std::lock_guard lock(mutex_);
    if (!kept_host_.empty()) {
      const HostMemory kept = kept_host_.back();
      kept_host_.pop_back();
      std::fill_n(kept.host, room, std::byte{0});
      return kept;
    }
  }
  void* memory = nullptr;
  void* seen = nullptr;
  const std::string call = "cudaHostAlloc of " + std::to_string(room) + " bytes";
  TUTTI_CHECK_OK(check(cudaHostAlloc(&memory, room, cudaHostAllocPortable | cudaHostAllocMapped), call.c_str()));
  std::fill_n(static_cast<std::byte*>(memory), room, std::byte{0});
  Status status = check(cudaHostGetDevicePointer(&seen, memory, 0), "cudaHostGetDevicePointer");
  const HostMemory made = {static_cast<std::byte*>(memory), static_cast<std::byte*>(seen), room};
  if (status.ok()) return made;
  free_host(made);
  return status;
}

void CudaDevice::free_host(const HostMemory& memory) {
  if (memory.bytes == kPageBytes) {
    const std::lock_guard lock(mutex_);
    kept_host_.push_back(memory);
    return;
  }
  const OnDevice here(ordinal_);
  if (cudaFreeHost(memory.host) != cudaSuccess) cudaGetLastError();
}

Result<HostMemory> CudaDevice::map_host(std::byte* memory, std::size_t bytes) {
  const OnDevice here(ordinal_);
  TUTTI_CHECK_OK(HostPages::of_process().register_pages(memory, bytes).during("mapping it for " + traits_.name));
  void* seen = nullptr;
  Status status = check(cudaHostGetDevicePointer(&seen, memory, 0), "cudaHostGetDevicePointer");
  const HostMemory mapped = {memory, static_cast<std::byte*>(seen), bytes};
  if (status.ok()) return mapped;
  unmap_host(mapped);
  return status;
}

void CudaDevice::unmap_host(const HostMemory& memory) {
  const OnDevice here(ordinal_);
  HostPages::of_process().unregister_pages(memory.host);
}

Result<File> CudaDevice::dma_buf_of(std::byte* memory, std::size_t bytes) {
  const OnDevice here(ordinal_);
  int offered = 0, descriptor = -1;
  TUTTI_CHECK_OK(driver().attribute(&offered, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, ordinal_));
  if (offered == 0)
    return unsupported("the driver of " + traits_.name +
                       " does not export dma-bufs; NVIDIA's open kernel modules do, with Linux 5.12 or later");
  TUTTI_CHECK_OK(driver().range_handle(&descriptor, as_address(memory), bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  return File(descriptor);
}

DeviceDistance CudaDevice::distance_to(const DeviceIdentity& peer) const {
  const Nvml* nvml = Nvml::of_process();
  return nvml == nullptr ? DeviceDistance() : nvml->distance(traits_.identity, peer);
}

Status CudaDevice::enable_peer_access(const Device& peer) {
  const int other = static_cast<int>(peer.traits().ordinal);
  if (other == ordinal_) return {};
  const OnDevice here(ordinal_);
  int can = 0;
  TUTTI_CHECK_OK(check(cudaDeviceCanAccessPeer(&can, ordinal_, other), "cudaDeviceCanAccessPeer"));
  if (can == 0) {
    return unsupported(traits_.name + " cannot access the memory of " + peer.traits().name +
                       ": they have neither NVLink nor a PCI path with peer access (see nvidia-smi topo -p2p r)");
  }
  const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
  if (error != cudaErrorPeerAccessAlreadyEnabled) return check(error, "cudaDeviceEnablePeerAccess");
  cudaGetLastError();
  return {};
}

// Memory pools and mapped ranges have no IPC handle, and other devices cannot access them without further calls.
Result<DeviceShare> CudaDevice::share_of(std::byte* memory, std::size_t bytes, File& file) {
  DeviceShare share = TUTTI_TRY(memory_.share_of(memory, bytes, file));
  if (share.kind != ShareKind::handle) return share;
  const OnDevice here(ordinal_);
  cudaPointerAttributes attributes = {};
  TUTTI_CHECK_OK(check(cudaPointerGetAttributes(&attributes, memory), "cudaPointerGetAttributes"));
  if (attributes.type != cudaMemoryTypeDevice || attributes.device != ordinal_)
    return invalid_argument("it is not in the memory of " + traits_.name);
  CUdeviceptr allocation = 0;  // IPC handles name whole allocations.
  std::size_t allocated = 0;
  TUTTI_CHECK_OK(driver().address_range(&allocation, &allocated, as_address(memory)).during("asking " + traits_.name));
  share.offset = as_address(memory) - allocation;
  if (share.offset + bytes > allocated)
    return invalid_argument("it extends beyond its allocation of " + std::to_string(allocated) + " bytes");
  cudaIpcMemHandle_t named;
  TUTTI_CHECK_OK(check(cudaIpcGetMemHandle(&named, memory - share.offset), "cudaIpcGetMemHandle"));
  static_assert(sizeof named == sizeof share.handle);
  std::memcpy(share.handle.data(), &named, sizeof named);
  return share;
}

Result<std::byte*> CudaDevice::open(const DeviceShare& share, const File& file) {
  const OnDevice here(ordinal_);
  std::byte* memory = nullptr;
  if (share.kind == ShareKind::handle) {
    TUTTI_CHECK_OK(check(foreign_.open(share.handle, memory), "cudaIpcOpenMemHandle"));
    return memory;
  }
  VirtualMemory opened = TUTTI_TRY(VirtualMemory::open(ordinal_, share, file));
  memory = opened.data();
  const std::lock_guard lock(mutex_);
  opened_.emplace(memory, std::move(opened));
  return memory;
}

void CudaDevice::close(std::byte* memory) {
  const OnDevice here(ordinal_);
  std::unique_lock lock(mutex_);
  if (const auto ended = opened_.extract(memory)) return;
  lock.unlock();
  foreign_.close(memory);
}

Result<std::unique_ptr<DeviceEvent>> CudaDevice::make_event() {
  const OnDevice here(ordinal_);
  cudaEvent_t event = nullptr;
  TUTTI_CHECK_OK(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags"));
  return std::unique_ptr<DeviceEvent>(new CudaEvent(event, traits_));
}

Result<std::unique_ptr<DeviceTimer>> CudaDevice::make_timer() { return CudaTimer::make(traits_); }

Result<std::uint64_t> CudaDevice::capture_of(DeviceStream stream) {
  const OnDevice here(ordinal_);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  // CUDA 12 and 13 agree on the first three parameters; the others have defaults.
  const cudaError_t error = cudaStreamGetCaptureInfo(as_stream(stream), &capture, &id);
  if (error == cudaErrorStreamCaptureImplicit) {  // The query does not invalidate that capture.
    cudaGetLastError();
    return invalid_usage("the call is in the default stream of " + traits_.name +
                         " while a stream that synchronizes with it is being captured into a graph; use another stream "
                         "for the call, or capture a stream that was created with cudaStreamNonBlocking");
  }
  TUTTI_CHECK_OK(check(error, "cudaStreamGetCaptureInfo"));
  if (capture == cudaStreamCaptureStatusInvalidated) {
    return invalid_usage("the stream capture was invalidated before this call; end it and capture again");
  }
  return capture == cudaStreamCaptureStatusActive ? std::uint64_t{id} : 0;
}

// Like in capture_of(), CUDA 12 and 13 agree on the first four parameters.
Status CudaDevice::keep_for_graph(DeviceStream stream, std::shared_ptr<void> kept) {
  const OnDevice here(ordinal_);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  TUTTI_CHECK_OK(check(cudaStreamGetCaptureInfo(as_stream(stream), &capture, &id, &graph), "cudaStreamGetCaptureInfo"));
  if (capture != cudaStreamCaptureStatusActive)
    return internal_error("the stream is not being captured, so no graph can keep the object");
  auto held = std::make_unique<std::shared_ptr<void>>(std::move(kept));
  const auto release_all = [](void* of_graph) { delete static_cast<std::shared_ptr<void>*>(of_graph); };
  cudaUserObject_t object = nullptr;
  TUTTI_CHECK_OK(check(cudaUserObjectCreate(&object, held.get(), release_all, 1, cudaUserObjectNoDestructorSync),
                       "cudaUserObjectCreate"));
  held.release();
  const cudaError_t error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
  if (error != cudaSuccess) cudaUserObjectRelease(object, 1);
  return check(error, "cudaGraphRetainUserObject");
}

Status CudaDevice::copy(std::byte* to, const std::byte* from, std::size_t bytes, DeviceStream stream) {
  const OnDevice here(ordinal_);
  return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, as_stream(stream)), "cudaMemcpyAsync");
}

// cudaStreamPerThread orders copies as created streams do.
bool CudaDevice::is_default(DeviceStream stream) const { return stream == nullptr || stream == cudaStreamLegacy; }

Status CudaDevice::put_word(std::uint32_t* word, std::uint32_t value, DeviceStream stream) {
  const OnDevice here(ordinal_);
  return driver()
      .write_word(as_stream(stream), as_address(word), value, CU_STREAM_WRITE_VALUE_DEFAULT)
      .during("writing a word in a stream of " + traits_.name);
}

Status CudaDevice::hold_until(const std::uint32_t* word, std::uint32_t value, DeviceStream stream) {
  const OnDevice here(ordinal_);
  return driver()
      .await_word(as_stream(stream), as_address(word), value, CU_STREAM_WAIT_VALUE_EQ)
      .during("waiting for the host " + in_stream_of(traits_));
}

Result<DeviceStream> CudaDevice::make_queue() { return DeviceStream{queues_[queues_given_++ % queues_.size()]}; }

// Queues are shared and live as long as the device.
void CudaDevice::drop_queue(DeviceStream) {}

}  // namespace tutti
