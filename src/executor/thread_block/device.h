// A device that runs thread blocks on the plans of ranks: a GPU. All that the communicator asks of one is here, so that
// tests can put threads of the host in its place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "src/base/path.h"
#include "src/base/status.h"
#include "src/executor/thread_block/batch.h"
#include "transports/device_block.h"
#include "transports/shm/segment.h"

namespace tutti {

struct CorrectTask;

// A queue of a device's work, the caller's own: a cudaStream_t. Null is one too.
using DeviceStream = void*;

// Which device it is, in all processes of a host: a GPU's UUID.
using DeviceIdentity = std::array<std::uint8_t, 16>;

// What another process opens a device's memory by.
using DeviceHandle = std::array<std::byte, 64>;

// From one device to another of the host.
struct DeviceDistance {
  Path path = Path::host_bridge;  // Where nobody knows.
  std::uint32_t links = 0;        // Of NVLink.
  bool known = false;
};

// Whose launches can be under way on a device side by side: those of all processes, as under MPS; those of one process,
// as on a GPU without, which gives its processes turns in time; or no two.
enum class ComputeSharing : std::uint32_t { all_processes, one_process, none };

// The same for memory inside an allocation: where it begins there.
struct DeviceShare {
  DeviceHandle handle = {};
  std::uint64_t offset = 0;
};

struct DeviceTraits {
  std::string name;  // In messages: "NVIDIA H200 (device 0)".
  DeviceIdentity identity = {};
  std::string bus_id = {};               // On PCI: "0000:a4:00.0"; empty where nobody knows.
  std::uint32_t ordinal = 0;             // As this process counts devices.
  std::uint32_t thread_blocks = 1;       // That can be under way at the same time.
  std::uint32_t thread_block_bytes = 0;  // Most memory of its own that a thread block gets.
  ComputeSharing company = ComputeSharing::all_processes;
  std::uint32_t queues = ~0U;  // Streams of a process whose work waits for nobody else's; more share them.
  // What network cards are told of its memory: see DeviceBlock.
  MemoryKind memory = MemoryKind::cuda;
  bool orders_writes = false;
};

// Host memory that the device maps.
struct HostMemory {
  std::byte* host = nullptr;
  std::byte* device = nullptr;  // The same, as the device's thread blocks see it.
  std::size_t bytes = 0;        // The device's own affair.
};

// A mark in a stream. A thread at a time; but several may hold() for it.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Moves the mark to where the stream is now.
  virtual Status record(DeviceStream stream) = 0;
  // What is put in the stream from now on waits for the mark.
  virtual Status hold(DeviceStream stream) = 0;
  // Whether what was before the mark is done; so is one never recorded.
  virtual Result<bool> reached() = 0;
};

// Two marks in a stream, and how long the device took from the one to the other. A thread at a time; not in a stream
// that is being captured.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  // The first mark, where the stream is now, and then the second.
  virtual Status begin(DeviceStream stream) = 0;
  virtual Status end(DeviceStream stream) = 0;
  // Nanoseconds; nothing while the device has not come to the second mark.
  virtual Result<std::optional<std::int64_t>> took_ns() = 0;
};

// Any thread. Nothing waits for the caller's streams, unless it says so, and all may be called while one of them is
// being captured into a graph. The thread's current device stays what it was.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceTraits& traits() const = 0;

  // Zeroed memory, aligned to 256 bytes.
  virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  // May wait for all work of the device: only for when no thread block waits for a peer any more.
  virtual void free(std::byte* memory) = 0;
  // Does not: the device keeps the memory for its next allocate() of as many bytes.
  virtual void recycle(std::byte* memory) = 0;
  // The same, for memory where other processes may still write: nobody gets it again.
  virtual void set_aside(std::byte* memory) = 0;
  // Gives back what recycle() has kept. May wait, as free(). For when memory is lacking.
  virtual void free_kept() = 0;
  // Done when it returns.
  virtual Status upload(std::byte* to, std::span<const std::byte> from) = 0;

  // Zeroed memory of the host that thread blocks reach, and the same for memory that is there already: whole pages.
  // What is mapped several times, always as much from there, is unmapped as often.
  virtual Result<HostMemory> allocate_host(std::size_t bytes) = 0;
  virtual void free_host(const HostMemory& memory) = 0;
  virtual Result<HostMemory> map_host(std::byte* memory, std::size_t bytes) = 0;
  virtual void unmap_host(const HostMemory& memory) = 0;  // May wait, as free().

  // A dma-buf of whole pages of an allocate(), by which drivers of network cards reach them.
  virtual Result<File> dma_buf_of(std::byte* memory, std::size_t bytes) = 0;

  // To a device of this process or of another.
  virtual DeviceDistance distance_to(const DeviceIdentity& peer) const = 0;

  // From now on thread blocks of this device reach what the other's allocate() gives, and what programs usually
  // allocate there.
  virtual Status reach(const Device& peer) = 0;

  // The same as allocate(), for other processes, and a file that they open it by; without one, they do by handle_of().
  // Other devices of the process reach it as they do what allocate() gives.
  virtual Result<std::byte*> allocate_shared(std::size_t bytes, File& file) = 0;
  // For other processes: of all of an allocate(), which stays until they have closed it.
  virtual Result<DeviceHandle> handle_of(std::byte* memory) = 0;
  // Of memory that a program has taken from the device in the plain way, which other devices of the process reach too.
  // Fails for any other.
  virtual Result<DeviceShare> share_of(std::byte* memory, std::size_t bytes) = 0;
  // Where this device's thread blocks see the memory of another process, and the end of that. What is opened several
  // times is closed as often.
  virtual Result<std::byte*> open(const DeviceHandle& handle) = 0;
  virtual Result<std::byte*> open(const File& file, std::size_t bytes) = 0;  // `bytes`: that were allocated.
  virtual void close(std::byte* memory) = 0;

  virtual Result<std::unique_ptr<DeviceEvent>> make_event() = 0;
  virtual Result<std::unique_ptr<DeviceTimer>> make_timer() = 0;
  // Names the capture that the stream is part of; 0: none, its work runs.
  virtual Result<std::uint64_t> capture_of(DeviceStream stream) = 0;
  // Held until the graph that the stream is captured into, what was instantiated of it and their replays are gone, or
  // until the capture has failed. Then it is let go in any thread, where nothing may be asked of the device.
  virtual Status keep_for_graph(DeviceStream stream, std::shared_ptr<void> kept) = 0;

  // The calls batch.calls[0..count) side by side, each with `thread_block_bytes` of memory for each of its thread
  // blocks: count times the channels of the widest count. Messages of all or of none are narrow. Either all of them are
  // under way at the same time at some point, or it fails; what runs in other streams has to leave them room.
  virtual Status launch(const KernelBatch& batch, std::uint32_t count, std::uint32_t thread_block_bytes,
                        DeviceStream stream) = 0;
  virtual Status copy(std::byte* to, const std::byte* from, std::size_t bytes, DeviceStream stream) = 0;
  // Waits for nobody, and may use all of the device.
  virtual Status correct(const CorrectTask& task, DeviceStream stream) = 0;

  // In the stream's turn, a word of host memory is written, behind all that was before it in the stream; or nothing
  // more of the stream is done until the word has this value, and no thread block waits for that. Addresses are the
  // device's.
  virtual Status put_word(std::uint32_t* word, std::uint32_t value, DeviceStream stream) = 0;
  virtual Status hold_until(const std::uint32_t* word, std::uint32_t value, DeviceStream stream) = 0;

  // A stream of the library's own, perhaps not for the first time: what is put there ends without the help of what may
  // be put there later. What the program's streams wait for does not hold it up, unless they are of the highest
  // priority and many.
  virtual Result<DeviceStream> make_queue() = 0;
  virtual void drop_queue(DeviceStream queue) = 0;  // Its work is done.
};

inline constexpr int kCurrentDevice = -1;

// The device with this number, or the one that is current in the calling thread. Fails where there is none, or where
// the library was built without.
Result<std::shared_ptr<Device>> find_device(int ordinal = kCurrentDevice);

// The number of the one that is current in the calling thread, which is left untouched. Fails as above.
Result<int> current_device();

}  // namespace tutti
