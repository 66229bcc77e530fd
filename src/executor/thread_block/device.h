// A device that runs plans in thread blocks: a GPU. The communicator accesses devices through this interface only.
// Tests implement it with host threads (the GPU emulator).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "src/base/p2p_level.h"
#include "src/base/status.h"
#include "src/executor/thread_block/batch.h"
#include "transports/device_region.h"
#include "transports/shm/segment.h"

namespace tutti {

struct ResidualTask;

// A work queue of the device, owned by the caller: a cudaStream_t. Null is the default stream.
using DeviceStream = void*;

// Identifies the device in all processes of a host: the GPU's UUID.
using DeviceIdentity = std::array<std::uint8_t, 16>;

// Handle by which another process opens device memory.
using DeviceHandle = std::array<std::byte, 64>;

// Connection between two devices of a host.
struct DeviceDistance {
  P2pLevel level = P2pLevel::phb;  // Default if unknown.
  std::uint32_t links = 0;         // Number of NVLinks.
  bool known = false;
};

// Which launches can run on a device concurrently. all_processes: launches of all processes, as under MPS. one_process:
// launches of one process; processes are time-sliced, as on a GPU without MPS. none: one launch at a time.
enum class ComputeSharing : std::uint32_t { all_processes, one_process, none };

// NVLink domain of a device: devices with the same number can access each other's memory, also on different hosts.
struct NvlinkDomain {
  std::array<std::uint8_t, 16> cluster = {};  // All zero: the domain does not extend beyond the host.
  std::uint32_t clique = 0;                   // Part of the cluster.
  bool extends_beyond_host() const { return cluster != std::array<std::uint8_t, 16>(); }
  bool operator==(const NvlinkDomain&) const = default;
};

enum class ShareKind : std::uint64_t {
  handle,  // By the handle, from processes of the host.
  file,    // By a file, from processes of the host.
  fabric,  // By the handle, from all hosts of the NVLink domain.
};

// How another process opens an allocation, with the place of memory inside it.
struct DeviceShare {
  DeviceHandle handle = {};
  std::uint64_t allocated_bytes = 0;  // Size of the allocation; 0 if `kind` is handle.
  std::uint64_t offset = 0;           // Bytes from the begin of the allocation to the memory.
  ShareKind kind = ShareKind::handle;
  bool by_file() const { return kind == ShareKind::file; }
};

struct DeviceTraits {
  std::string name;  // For messages: "NVIDIA H200 (device 0)".
  DeviceIdentity identity = {};
  std::string bus_id = {};               // PCI address, "0000:a4:00.0"; empty if unknown.
  std::uint32_t ordinal = 0;             // Index in this process.
  std::uint32_t thread_blocks = 1;       // Maximum concurrent thread blocks.
  std::uint32_t thread_block_bytes = 0;  // Maximum shared memory per thread block.
  ComputeSharing sharing = ComputeSharing::all_processes;
  // Hardware queues per process; streams beyond this number share queues and wait for each other.
  std::uint32_t queues = ~0U;
  // Passed to NICs; see DeviceRegion.
  MemoryKind memory = MemoryKind::cuda;
  bool orders_writes = false;
  bool multicast = false;  // Multicast objects, and plans that access memory of all ranks by switches.
  NvlinkDomain domain = {};
};

// Host memory mapped by the device.
struct HostMemory {
  std::byte* host = nullptr;
  std::byte* device = nullptr;  // Address of the same memory on the device.
  std::size_t bytes = 0;        // For internal use by the device.
};

// A multicast object of a rank and its peers. Destroyed when no thread block uses the multicast address any more.
class DeviceMulticast {
 public:
  virtual ~DeviceMulticast() = default;
  // Returns how other ranks open the object: like the memory for which it was created, by `file` or by a fabric handle.
  virtual Result<DeviceShare> share(File& file) const = 0;
};

// A mark in a stream. Not thread-safe, except that several threads may call hold().
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Moves the mark to the current end of the stream.
  virtual Status record(DeviceStream stream) = 0;
  // Makes later work of the stream wait for the mark.
  virtual Status hold(DeviceStream stream) = 0;
  // Like record() and hold(), for a stream under capture. Each replay of the graph moves the mark, or waits for the
  // mark as it is when the replay is enqueued. The event must outlive the replays.
  virtual Status record_in_replays(DeviceStream stream) = 0;
  virtual Status hold_in_replays(DeviceStream stream) = 0;
  // True if all work before the mark is done, or if the mark was never recorded.
  virtual Result<bool> reached() = 0;
};

// Measures the time between two marks in a stream. Not thread-safe. Not for streams under capture.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  // Put the first and second mark at the current end of the stream.
  virtual Status begin(DeviceStream stream) = 0;
  virtual Status end(DeviceStream stream) = 0;
  // Elapsed nanoseconds, or nothing while the second mark is not reached.
  virtual Result<std::optional<std::int64_t>> took_ns() = 0;
};

// The calls of a launch, which run concurrently, or in order if the batch says so.
struct DeviceLaunch {
  KernelBatch batch = {};
  std::uint32_t count = 0;               // Number of calls in `batch`.
  std::uint32_t thread_block_bytes = 0;  // Memory per thread block.
  std::uint32_t threads = ~0U;           // Threads of a thread block that have work. A device may run more, or fewer.
  // True: the thread blocks become resident together, not one by one. Launches of ranks that share a device need this,
  // because thread blocks of two such launches could otherwise wait for each other's room. False: they need not wait
  // for room for all.
  bool together = false;
  // True: other ranks of the communicator use this device, too. Thread blocks must then not form clusters, which need
  // more room than as many single ones.
  bool shares_device = false;
};

// Thread-safe. Unless stated otherwise, no function waits for the caller's streams, and all may be called during stream
// capture. The thread's current device is preserved.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceTraits& traits() const = 0;

  // Returns zeroed memory, aligned to 256 bytes.
  virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  // Like allocate(), for memory that no other device accesses. Function allocate() may wait for kernels of devices that
  // can access memory of this one, and which may wait for the caller's rank; this function does not, where possible.
  virtual Result<std::byte*> allocate_private(std::size_t bytes) { return allocate(bytes); }
  // Frees memory. May wait for all work of the device; call it only when no thread block waits for a peer any more.
  virtual void free(std::byte* memory) = 0;
  // Frees memory without waiting: the device caches it for a later allocate() of the same size.
  virtual void recycle(std::byte* memory) = 0;
  // Withdraws memory that other processes may still write: it is not reused.
  virtual void set_aside(std::byte* memory) = 0;
  // Releases the memory cached by recycle(), when memory is scarce. May wait like free().
  virtual void free_kept() = 0;
  // True if the address lies in the memory of a device, which the host cannot access.
  virtual bool holds(const std::byte* memory) const = 0;
  // Copies host memory to the device; complete on return.
  virtual Status upload(std::byte* to, std::span<const std::byte> from) = 0;

  // Host memory accessible to the device: allocate_host() returns zeroed memory, map_host() registers existing whole
  // pages. Repeated mappings of an address must have the same size and need as many unmap_host() calls.
  virtual Result<HostMemory> allocate_host(std::size_t bytes) = 0;
  virtual void free_host(const HostMemory& memory) = 0;
  virtual Result<HostMemory> map_host(std::byte* memory, std::size_t bytes) = 0;
  virtual void unmap_host(const HostMemory& memory) = 0;  // May wait like free().

  // Exports whole pages of an allocate() as a dma-buf, for NIC drivers.
  virtual Result<File> dma_buf_of(std::byte* memory, std::size_t bytes) = 0;

  // Connection to another device, of this or another process.
  virtual DeviceDistance distance_to(const DeviceIdentity& peer) const = 0;

  // Enables access of this device to memory from peer.allocate(), and to ordinary allocations of programs there.
  virtual Status enable_peer_access(const Device& peer) = 0;

  // Like allocate(), for memory that other processes open, through a file where the system supports that. Other devices
  // of this process access it like memory of allocate().
  virtual Result<std::byte*> allocate_shared(std::size_t bytes) = 0;
  // Like allocate_shared(), for memory that processes on other hosts of the NVLink domain open, too, by a fabric
  // handle.
  virtual Result<std::byte*> allocate_for_domain(std::size_t bytes);
  // Returns how other processes open part of an allocation: memory of this interface, or plain memory of the program.
  // Stores the file, if there is one, in `file`. Fails for other kinds of memory. Memory with a handle must stay until
  // they have closed it.
  virtual Result<DeviceShare> share_of(std::byte* memory, std::size_t bytes, File& file) = 0;
  // Maps an allocation of another process for this device, and returns its begin; close() unmaps it. Repeated open()
  // calls need as many close() calls. `file`: ignored unless share.by_file().
  virtual Result<std::byte*> open(const DeviceShare& share, const File& file) = 0;
  virtual void close(std::byte* memory) = 0;

  // Multicast objects, in these steps: one rank creates the object for an allocation of allocate_shared() on each of
  // `devices`; the others open it; then each binds its allocation. `memory` lies in the allocation, and bind() returns
  // its multicast address. Ranks must bind allocations of the same size.
  virtual Result<std::unique_ptr<DeviceMulticast>> create_multicast(std::byte* memory, std::uint32_t devices);
  virtual Result<std::unique_ptr<DeviceMulticast>> open_multicast(std::byte* memory, const DeviceShare& share,
                                                                  const File& file);
  virtual Result<std::byte*> bind(DeviceMulticast& object, std::byte* memory);

  virtual Result<std::unique_ptr<DeviceEvent>> make_event() = 0;
  virtual Result<std::unique_ptr<DeviceTimer>> make_timer() = 0;
  // Identifies the capture that the stream belongs to; 0: not capturing.
  virtual Result<std::uint64_t> capture_of(DeviceStream stream) = 0;
  // Keeps an object alive until the captured graph, its instances and their replays are destroyed, or the capture has
  // failed. The object may be released in any thread, and its destructor must not call the device.
  virtual Status keep_for_graph(DeviceStream stream, std::shared_ptr<void> kept) = 0;

  // The number of thread blocks is that of the calls times the channels of the widest call; if the calls run in order,
  // it is that of the channels. Either all calls or none
  // use compression. Fails if the device has no room for all thread blocks at the same time; work in other streams must
  // leave room for them.
  virtual Status launch(const DeviceLaunch& launch, DeviceStream stream) = 0;
  virtual Status copy(std::byte* to, const std::byte* from, std::size_t bytes, DeviceStream stream) = 0;
  // True for the stream in which copies between devices wait for all work of both.
  virtual bool is_default(DeviceStream stream) const { return stream == nullptr; }
  // Enqueues error feedback. Waits for no peer, and may use the whole device.
  virtual Status apply_residual(const ResidualTask& task, DeviceStream stream) = 0;

  // Stream-ordered operations on a word of host memory. put_word() writes the word after all earlier work of the
  // stream. Function hold_until() blocks the stream until the word has this value, without occupying a thread block.
  // Addresses are those of the device.
  virtual Status put_word(std::uint32_t* word, std::uint32_t value, DeviceStream stream) = 0;
  virtual Status hold_until(const std::uint32_t* word, std::uint32_t value, DeviceStream stream) = 0;

  // Returns a stream of the library's own, possibly shared with earlier callers. Work there never depends on later work
  // of the same stream. Blocked streams of the program do not delay it, unless they are many and of the highest
  // priority.
  virtual Result<DeviceStream> make_queue() = 0;
  virtual void drop_queue(DeviceStream queue) = 0;  // Call after its work is done.
};

inline Result<std::byte*> Device::allocate_for_domain(std::size_t) {
  return unsupported(traits().name + " has no fabric handles");
}
inline Result<std::unique_ptr<DeviceMulticast>> Device::create_multicast(std::byte*, std::uint32_t) {
  return unsupported(traits().name + " has no multicast objects");
}
inline Result<std::unique_ptr<DeviceMulticast>> Device::open_multicast(std::byte*, const DeviceShare&, const File&) {
  return create_multicast(nullptr, 0);
}
inline Result<std::byte*> Device::bind(DeviceMulticast&, std::byte*) {
  return unsupported(traits().name + " has no multicast objects");
}

inline constexpr int kCurrentDevice = -1;

// Returns the device with this number, or the calling thread's current device. Fails if it does not exist, or in a
// build without CUDA.
Result<std::shared_ptr<Device>> find_device(int ordinal = kCurrentDevice);

// Returns the number of the calling thread's current device, without changing it. Fails like find_device().
Result<int> current_device();

}  // namespace tutti
