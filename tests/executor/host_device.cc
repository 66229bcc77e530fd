#include "tests/executor/host_device.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <list>
#include <numeric>
#include <thread>

#include "src/base/pages.h"
#include "src/executor/thread_block/compressed_backend.h"
#include "src/executor/thread_block/residual.h"
#include "tests/executor/host_thread_block.h"

namespace tutti::test {
namespace {

constexpr int kLeftovers = 0xA5;  // Stale contents of a thread block's memory.
constexpr auto kLook = std::chrono::microseconds(20);

std::byte* take(std::size_t bytes, std::size_t alignment) {
  const std::size_t rounded = round_up(bytes, alignment);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  TUTTI_ASSERT(memory != nullptr);
  std::memset(memory, 0, rounded);
  return memory;
}

std::size_t sum_of(const std::map<std::byte*, std::size_t>& memory) {
  return std::accumulate(memory.begin(), memory.end(), std::size_t{0},
                         [](std::size_t sum, const auto& each) { return sum + each.second; });
}

// Errors that a GPU would report as an illegal access.
Status check_memory(const BatchCall& entry, std::uint32_t thread_block_bytes) {
  const std::uint32_t needed = ChannelLayout(*reinterpret_cast<const Image*>(entry.call.image)).bytes;
  const bool own = entry.call.workspace == nullptr;
  const std::uint32_t given = own ? thread_block_bytes : entry.workspace_bytes;
  if (needed <= given) return {};
  return internal_error("a thread block works in " + std::to_string(needed) + " bytes, but its " +
                        (own ? "memory" : "workspace") + " has " + std::to_string(given));
}

}  // namespace

HostDevice::HostDevice(const HostDeviceOptions& options)
    : options_(options),
      traits_{.name = "threads of the host (device " + std::to_string(options.ordinal) + ")",
              .identity = {0x77, static_cast<std::uint8_t>(options.ordinal)},
              .ordinal = options.ordinal,
              .thread_blocks = options.thread_blocks,
              .thread_block_bytes = options.thread_block_bytes,
              .sharing = options.sharing,
              .queues = options.queues,
              .memory = MemoryKind::host,
              .orders_writes = options.orders_writes},
      memory_(traits_.name, options.memory_bytes),
      events_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      null_(HostStream::Kind::null) {}

HostDevice::~HostDevice() {
  TUTTI_ASSERT(streams_.empty() && *events_ == 0);
  wait_for_all();
  for (const auto& [begin, bytes] : host_allocated_) std::free(begin);
}

DeviceStream HostDevice::make_stream() {
  auto* stream = new HostStream(HostStream::Kind::made);
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
  return stream;
}

void HostDevice::destroy_stream(DeviceStream stream) {
  auto* made = static_cast<HostStream*>(stream);
  {
    const std::lock_guard lock(mutex_);
    TUTTI_ASSERT(streams_.erase(made) == 1);
  }
  delete made;
}

HostStream& HostDevice::stream_of(DeviceStream stream) {
  return stream == nullptr ? null_ : *static_cast<HostStream*>(stream);
}

HostDeviceUsage HostDevice::usage() const {
  const EmulatorMemory::Usage taken = memory_.taken();
  const std::lock_guard lock(mutex_);
  std::size_t mapped_bytes = 0;
  for (const auto& [memory, mapped] : mapped_) mapped_bytes += mapped.bytes;
  return {.allocations = taken.allocations,
          .allocated_bytes = taken.bytes,
          .host_allocations = host_allocated_.size(),
          .host_allocated_bytes = sum_of(host_allocated_),
          .mappings = mapped_.size(),
          .mapped_bytes = mapped_bytes,
          .opened = opened_.size(),
          .events = *events_,
          .streams = streams_.size()};
}

void HostDevice::wait_for_all() {
  std::list<Event> ends;
  {
    const std::lock_guard lock(mutex_);
    null_.mark(ends.emplace_back());
    for (HostStream* stream : streams_) stream->mark(ends.emplace_back());
  }
  for (const Event& end : ends) end.synchronize();
}

void HostDevice::free(std::byte* memory) {
  std::unique_lock driver(driver_, std::defer_lock);
  if (options_.free_holds_launches) driver.lock();
  freeing_ = driver.owns_lock();
  wait_for_all();
  freeing_ = false;
  memory_.free(memory);
}

Status HostDevice::upload(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
  return {};
}

Result<HostMemory> HostDevice::allocate_host(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::byte* memory = take(std::max<std::size_t>(bytes, 1), mapped_page_bytes());
  host_allocated_.emplace(memory, bytes);
  return HostMemory{memory, memory, bytes};
}

void HostDevice::free_host(const HostMemory& memory) {
  {
    const std::lock_guard lock(mutex_);
    TUTTI_ASSERT(memory.device == memory.host && host_allocated_.erase(memory.host) == 1);
  }
  std::free(memory.host);
}

Result<HostMemory> HostDevice::map_host(std::byte* memory, std::size_t bytes) {
  const std::size_t page = mapped_page_bytes();
  if (reinterpret_cast<std::uintptr_t>(memory) % page != 0 || bytes % page != 0 || bytes == 0)
    return invalid_argument("what is mapped must be whole pages of " + std::to_string(page) + " bytes");
  const std::lock_guard lock(mutex_);
  Mapped& mapped = mapped_[memory];
  if (mapped.times > 0 && mapped.bytes != bytes)
    return internal_error("another length is mapped from there already: " + std::to_string(mapped.bytes));
  mapped.bytes = bytes;
  ++mapped.times;
  return HostMemory{memory, memory, bytes};
}

void HostDevice::unmap_host(const HostMemory& memory) {
  const std::lock_guard lock(mutex_);
  const auto found = mapped_.find(memory.host);
  TUTTI_ASSERT(memory.device == memory.host && found != mapped_.end());
  if (--found->second.times == 0) mapped_.erase(found);
}

// Uses /dev/udmabuf, if the kernel has it, which turns a memory file into a dma-buf.
Result<File> HostDevice::dma_buf_of(std::byte* memory, std::size_t bytes) {
  const auto range = memory_.find(memory, bytes);
  if (!range) return invalid_argument("it is not in the memory of " + traits_.name);
  const File maker(::open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
  if (!maker) return system_error("open /dev/udmabuf");
  udmabuf_create wanted = {};
  wanted.memfd = static_cast<std::uint32_t>(range->descriptor);
  wanted.flags = UDMABUF_FLAGS_CLOEXEC;
  wanted.offset = static_cast<std::uint64_t>(memory - range->begin);
  wanted.size = bytes;
  File made(::ioctl(maker.get(), UDMABUF_CREATE, &wanted));
  if (!made) return system_error("make a dma-buf");
  return made;
}

Status HostDevice::enable_peer_access(const Device& peer) {
  if (&peer == this) return {};
  if (dynamic_cast<const HostDevice*>(&peer) != nullptr) return check_reach(peer.traits().ordinal);
  return unsupported(traits_.name + " does not reach " + peer.traits().name);
}

Status HostDevice::check_reach(std::uint32_t ordinal) const {
  if ((options_.unreachable >> ordinal & 1) == 0) return {};
  return unsupported(traits_.name + " does not reach device " + std::to_string(ordinal));
}

// The process that owns a descriptor, and its memory.
struct HostHandle {
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::uint32_t ordinal = 0;
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};

Result<std::byte*> HostDevice::allocate_shared(std::size_t bytes) {
  return memory_.take({bytes, options_.shares_by_file});
}

// As on a GPU, memory with a file has no handle.
Result<DeviceShare> HostDevice::share_of(std::byte* memory, std::size_t bytes, File& file) {
  const auto range = memory_.find(memory, bytes);
  if (!range) return invalid_argument("it is not in the memory of " + traits_.name);
  DeviceShare share = {.offset = static_cast<std::uint64_t>(memory - range->begin)};
  if (range->shared) {
    file = TUTTI_TRY(memory_.file_of(range->begin));
    share.allocated_bytes = range->bytes;
    share.kind = ShareKind::file;
    return share;
  }
  const HostHandle named = {::getpid(), range->descriptor, traits_.ordinal, 0, range->bytes};
  std::memcpy(share.handle.data(), &named, sizeof named);
  return share;
}

Result<std::byte*> HostDevice::open(const DeviceShare& share, const File& file) {
  if (share.by_file()) {
    File own(::dup(file.get()));
    if (!own) return system_error("duplicate a descriptor");
    return adopt(std::move(own), share.allocated_bytes);
  }
  HostHandle named;
  std::memcpy(&named, share.handle.data(), sizeof named);
  TUTTI_CHECK_OK(check_reach(named.ordinal));
  const std::string path = "/proc/" + std::to_string(named.process) + "/fd/" + std::to_string(named.descriptor);
  File opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened) return system_error("open " + path);
  return adopt(std::move(opened), named.bytes);
}

Result<std::byte*> HostDevice::adopt(File file, std::size_t bytes) {
  Segment opened = TUTTI_TRY(Segment::adopt(std::move(file), bytes));
  const std::lock_guard lock(mutex_);
  std::byte* memory = opened.data();
  opened_.emplace(memory, std::move(opened));
  return memory;
}

void HostDevice::close(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(memory);
  TUTTI_ASSERT(found != opened_.end());
  opened_.erase(found);
}

Result<std::unique_ptr<DeviceEvent>> HostDevice::make_event() {
  return std::unique_ptr<DeviceEvent>(std::make_unique<HostEvent>(null_, events_));
}

Result<std::unique_ptr<DeviceTimer>> HostDevice::make_timer() {
  return std::unique_ptr<DeviceTimer>(std::make_unique<HostTimer>(null_, events_));
}

// As in a kernel's grid, all calls that run at the same time get as many thread blocks as the one with the most
// channels.
Status HostDevice::launch(const DeviceLaunch& launch, DeviceStream stream) {
  const KernelBatch& batch = launch.batch;
  const std::uint32_t count = launch.count, thread_block_bytes = launch.thread_block_bytes;
  if (count == 0 || count > kMaxCalls) return invalid_argument("a launch of " + std::to_string(count) + " calls");
  std::uint32_t widest = 0;
  for (std::uint32_t i = 0; i < count; ++i) widest = std::max(widest, batch.calls[i].channels);
  const std::uint32_t thread_blocks = widest * (count / batch.in_order);
  if (thread_blocks > traits_.thread_blocks) {
    return unsupported("a launch of " + std::to_string(thread_blocks) + " thread blocks on " + traits_.name +
                       ", which runs " + std::to_string(traits_.thread_blocks) + " at the same time");
  }
  if (thread_block_bytes > traits_.thread_block_bytes) {
    return unsupported("a thread block with " + std::to_string(thread_block_bytes) + " bytes of memory on " +
                       traits_.name + ", which gives " + std::to_string(traits_.thread_block_bytes));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((batch.calls[i].call.task.compression != CompressionFormat::none) != has_compressed_messages(batch))
      return invalid_argument("a launch of calls with narrow messages and of others");
  }
  if (batch.in_order != 1 && (batch.in_order != count || !runs_as_ll(batch, count)))
    return invalid_argument("a launch of calls in order, not all of which use LL");
  const Batch work{batch, count, thread_blocks, thread_block_bytes};
  ++(launch.together ? launches_together_ : plain_launches_);
  {
    const std::lock_guard lock(mutex_);
    if (launched_.size() < kMaxRecorded) launched_.push_back(batch.calls[0].call.self.input);
  }
  ++held_launches_;
  const std::lock_guard driver(driver_);
  --held_launches_;
  return stream_of(stream).put([this, work] { return run(work); });
}

// Starts all thread blocks of the batch together, once the device has capacity for them.
Status HostDevice::run(const Batch& batch) {
  for (std::uint32_t i = 0; i < batch.count; ++i)
    TUTTI_CHECK_OK(check_memory(batch.calls.calls[i], batch.thread_block_bytes));
  if (options_.sharing == ComputeSharing::none) {
    run_alone(batch);
    return {};
  }
  std::unique_lock lock(mutex_);
  blocks_freed_.wait(lock, [&] { return options_.thread_blocks - blocks_busy_ >= batch.thread_blocks; });
  blocks_busy_ += batch.thread_blocks;
  lock.unlock();
  run_thread_blocks(batch);
  lock.lock();
  blocks_busy_ -= batch.thread_blocks;
  blocks_freed_.notify_all();
  return {};
}

// Holds a file lock, since a thread block that waits for another launch would wait forever. The kernel releases the
// lock of a killed process.
void HostDevice::run_alone(const Batch& batch) {
  const std::lock_guard lock(launch_mutex_);
  struct flock file_lock = {};
  file_lock.l_type = F_WRLCK;
  while (options_.launch_lock >= 0 && ::fcntl(options_.launch_lock, F_SETLKW, &file_lock) != 0)
    TUTTI_ASSERT(errno == EINTR);
  run_thread_blocks(batch);
  file_lock.l_type = F_UNLCK;
  if (options_.launch_lock >= 0) TUTTI_ASSERT(::fcntl(options_.launch_lock, F_SETLK, &file_lock) == 0);
}

void HostDevice::run_thread_blocks(const Batch& batch) const {
  const bool compressed = has_compressed_messages(batch.calls), ll = runs_as_ll(batch.calls, batch.count);
  std::list<HostThread::Shared> thread_blocks;
  std::vector<std::thread> threads;
  const std::uint32_t at_a_time = batch.count / batch.calls.in_order;
  const std::uint32_t channels = batch.thread_blocks / at_a_time;
  for (std::uint32_t i = 0; i < batch.thread_blocks; ++i) {
    const std::uint32_t first = i / channels, channel = i % channels;
    if (batch.calls.in_order == 1 && channel >= batch.calls.calls[first].channels) continue;
    HostThread::Shared& block = thread_blocks.emplace_back(options_.thread_count, batch.thread_block_bytes);
    std::memset(block.memory().data(), kLeftovers, block.memory().size());
    for (std::uint32_t thread = 0; thread < options_.thread_count; ++thread) {
      threads.emplace_back([&batch, &block, first, channel, thread, compressed, ll] {
        const auto own = [&](const KernelWatch& watch) {
          return WatchedHostThreadBlock(block, thread, watch, channel);
        };
        std::byte* const memory = block.memory().data();
        const BatchCall& entry = batch.calls.calls[first];
        compressed ? run_call<CompressedBackend>(entry, channel, own(entry.watch), memory)
        : ll       ? run_ll_calls(batch.calls, first, channel, memory, own)
                   : run_call(entry, channel, own(entry.watch), memory);
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

Status HostDevice::copy(std::byte* to, const std::byte* from, std::size_t bytes, DeviceStream stream) {
  return stream_of(stream).put([to, from, bytes] {
    std::memmove(to, from, bytes);
    return Status();
  });
}

Status HostDevice::apply_residual(const ResidualTask& task, DeviceStream stream) {
  return stream_of(stream).put([task, thread_count = options_.thread_count] {
    for (std::uint32_t thread = 0; thread < thread_count; ++thread) tutti::apply_residual(task, {thread, thread_count});
    return Status();
  });
}

Status HostDevice::put_word(std::uint32_t* word, std::uint32_t value, DeviceStream stream) {
  return stream_of(stream).put([word, value] {
    store_release(word, value);
    return Status();
  });
}

Status HostDevice::hold_until(const std::uint32_t* word, std::uint32_t value, DeviceStream stream) {
  return stream_of(stream).put([word, value] {
    while (load_acquire(word) != value) std::this_thread::sleep_for(kLook);
    return Status();
  });
}

}  // namespace tutti::test
