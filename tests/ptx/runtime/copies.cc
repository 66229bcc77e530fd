// Copies and fills of memory, and words that streams write and wait for.
#include <algorithm>
#include <thread>

#include "src/base/atomic.h"
#include "tests/ptx/runtime/driver.h"
#include "tests/ptx/runtime/machine_work.h"
#include "tests/ptx/runtime/memory.h"
#include "tests/ptx/runtime/stream.h"

namespace tutti::cudart {
namespace {

// A copy, a fill, or a write of a word.
class CopyWork final : public MachineWork {
 public:
  CopyWork(const char* name, const ptx::CopyLaunch& copy) : MachineWork(copy.device), name_(name), copy_(copy) {}
  std::string name() const override { return name_; }
  // Afterwards the copy does not access memory.
  void abandon() override {
    if (copy_.claimed == nullptr || !copy_.claimed->exchange(true)) return;
    while (!has_ended()) std::this_thread::yield();
  }

 private:
  Status start(ptx::Machine& machine, ptx::LaunchDone done) override {
    copy_.order = order;
    copy_.claimed = std::make_shared<std::atomic<bool>>(false);
    machine.start(copy_, std::move(done));
    return {};
  }

  const char* const name_;
  ptx::CopyLaunch copy_;
};

MakeWork make_copy(const char* name, const ptx::CopyLaunch& copy) {
  return [=] { return std::make_unique<CopyWork>(name, copy); };
}

using Bytes = std::vector<std::byte>;

// Reads the source of a copy, which begins later in the stream, while its call still waits.
class StageWork final : public Work {
 public:
  StageWork(const std::byte* from, std::shared_ptr<Bytes> staged) : from_(from), staged_(std::move(staged)) {}
  bool advance() override {
    std::copy_n(from_, staged_->size(), staged_->begin());
    return true;
  }
  std::string name() const override { return "the staging of a copy"; }

 private:
  const std::byte* const from_;
  const std::shared_ptr<Bytes> staged_;
};

class AwaitWord final : public Work {
 public:
  AwaitWord(const std::uint32_t* word, std::uint32_t value, unsigned flags)
      : word_(word), value_(value), condition_(flags & ~unsigned{CU_STREAM_WAIT_VALUE_FLUSH}) {}
  bool advance() override {
    const std::uint32_t seen = load_acquire(word_);
    switch (condition_) {
      case CU_STREAM_WAIT_VALUE_EQ: return seen == value_;
      case CU_STREAM_WAIT_VALUE_AND: return (seen & value_) != 0;
      case CU_STREAM_WAIT_VALUE_NOR: return ~(seen | value_) != 0;
      default: return static_cast<std::int32_t>(seen - value_) >= 0;
    }
  }
  bool holds_queue() const override { return true; }
  bool polls() const override { return true; }
  std::string name() const override { return "a wait for a word"; }

 private:
  const std::uint32_t* const word_;
  const std::uint32_t value_;
  const unsigned condition_;
};

struct Place {
  bool known = false;  // Not pageable host memory.
  bool on_host = true;
  bool reachable = true;  // By the copying device.
  bool fits = true;
  int device = -1;  // -1: host memory.
};

Place place_of(const void* memory, std::size_t bytes, const DeviceState& device) {
  const Allocation* allocation = find_allocation(memory);
  if (allocation == nullptr) return {};
  Place place = {.known = true, .on_host = allocation->on_host()};
  if (!place.on_host) place.device = allocation->device;
  place.fits = static_cast<const std::byte*>(memory) + bytes <= allocation->begin + allocation->bytes;
  // Copies between devices need no peer access: the driver stages them. Mapped memory needs access.
  place.reachable =
      allocation->origin != Origin::mapped || (allocation->devices & (std::uint64_t{1} << device.ordinal)) != 0;
  return place;
}

bool matches(cudaMemcpyKind kind, const Place& to, const Place& from) {
  switch (kind) {
    case cudaMemcpyHostToHost: return to.on_host && from.on_host;
    case cudaMemcpyHostToDevice: return from.on_host && to.known;
    case cudaMemcpyDeviceToHost: return to.on_host && from.known;
    case cudaMemcpyDeviceToDevice: return to.known && from.known;
    case cudaMemcpyDefault: return true;
  }
  return false;
}

struct CopyRequest {
  void* to;
  const void* from;
  std::size_t bytes;
  cudaMemcpyKind kind;
  bool returns_early;  // cudaMemcpyAsync()
};

// Larger copies are synchronous. Source: CUDA programming guide, "Asynchronous concurrent execution".
constexpr std::size_t kMaxStagedBytes = 64 << 10;

// Waits for the stream and reads the source; the write of the device's memory may come after the return. The host knows
// the end of earlier work only after cudaMemcpy(), since cudaMemcpyAsync() need not wait for it.
cudaError_t copy_staged(Lock& lock, Stream& stream, const CopyRequest& request, ptx::CopyLaunch launch) {
  const auto staged = std::make_shared<Bytes>(request.bytes);
  const auto stage = [from = launch.from, staged] { return std::make_unique<StageWork>(from, staged); };
  TaskPtr staging;
  const cudaError_t error = enqueue(stream, {cudaGraphNodeTypeEmpty, stage}, &staging);
  if (error != cudaSuccess) return error;
  launch.from = nullptr;
  launch.staged = staged;
  append(stream, make_copy("a copy", launch)(), {});
  engine().await(lock, "cudaMemcpy", [&staging] { return staging->done; });
  if (!request.returns_early) engine().observe(*staging);
  return device_state(stream.device).fault;
}

// In the legacy stream, a copy between devices waits for all earlier work of both. Source: CUDA programming guide,
// "Peer-to-Peer Memory Copy".
void await_devices(Stream& legacy, const Place& to, const Place& from) {
  std::vector<TaskPtr> before = last_tasks(device_state(to.device));
  const std::vector<TaskPtr> others = last_tasks(device_state(from.device));
  before.insert(before.end(), others.begin(), others.end());
  append(legacy, nullptr, std::move(before));
}

// Copies of pageable memory, which the driver stages, and copies within host memory wait for the stream, and return
// when they are done, except for small copies to a device. During capture they are nodes. Source: CUDA runtime API,
// "API synchronization behavior".
cudaError_t copy_in(Lock& lock, Stream& stream, const CopyRequest& request) {
  const DeviceState& device = device_state(stream.device);
  const Place to = place_of(request.to, request.bytes, device), from = place_of(request.from, request.bytes, device);
  if (!matches(request.kind, to, from)) return cudaErrorInvalidValue;
  for (const Place& place : {to, from}) {
    if (!place.fits || !place.reachable) return cudaErrorInvalidValue;
  }
  if (request.bytes == 0) return cudaSuccess;
  auto* target = static_cast<std::byte*>(request.to);
  const auto* source = static_cast<const std::byte*>(request.from);
  const ptx::CopyLaunch launch = {.to = target, .from = source, .bytes = request.bytes, .device = stream.device};
  const bool staged = !from.known && to.known && !to.on_host && request.bytes <= kMaxStagedBytes;
  if (staged && stream.capture == nullptr) return copy_staged(lock, stream, request, launch);
  const bool between_devices = to.device >= 0 && from.device >= 0 && to.device != from.device;
  if (between_devices && &stream == &device.legacy) await_devices(stream, to, from);
  TaskPtr task;
  const cudaError_t error = enqueue(stream, {cudaGraphNodeTypeMemcpy, make_copy("a copy", launch)}, &task);
  if (error != cudaSuccess || task == nullptr) return error;
  const bool within_device = to.known && from.known && !to.on_host && !from.on_host;
  const bool within_host = to.on_host && from.on_host;
  const bool pageable = !to.known || !from.known;
  if (pageable || within_host || (!request.returns_early && !within_device)) engine().await(lock, "cudaMemcpy", task);
  return device.fault;
}

cudaError_t copy(const CopyRequest& request, cudaStream_t handle) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    Stream* stream = stream_of(handle, device);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : copy_in(lock, *stream, request);
  });
}

cudaError_t fill(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  return enter_runtime([&](Lock&, DeviceState& device) {
    Stream* stream = stream_of(handle, device);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const Place place = place_of(to, bytes, device_state(stream->device));
    if (!place.known || !place.fits || !place.reachable) return cudaErrorInvalidValue;
    if (bytes == 0) return cudaSuccess;
    const ptx::CopyLaunch launch = {
        .to = static_cast<std::byte*>(to), .bytes = bytes, .value = value, .device = stream->device};
    return enqueue(*stream, {cudaGraphNodeTypeMemset, make_copy("a memset", launch)});
  });
}

}  // namespace

CUresult stream_write_value(CUstream handle, CUdeviceptr address, std::uint32_t value, unsigned flags) {
  if ((flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) != 0) return CUDA_ERROR_INVALID_VALUE;
  return enter_driver([&](Lock&, DeviceState& device) {
    Stream* stream = stream_of(handle, device);
    auto* word = reinterpret_cast<std::byte*>(address);
    if (stream == nullptr || find_allocation(word) == nullptr || address % 4 != 0) return cudaErrorInvalidValue;
    const ptx::CopyLaunch launch = {.to = word, .writes_word = true, .word = value, .device = stream->device};
    return enqueue(*stream, {cudaGraphNodeTypeEmpty, make_copy("a write of a word", launch)});
  });
}

CUresult stream_wait_value(CUstream handle, CUdeviceptr address, std::uint32_t value, unsigned flags) {
  return enter_driver([&](Lock&, DeviceState& device) {
    Stream* stream = stream_of(handle, device);
    const auto* word = reinterpret_cast<const std::uint32_t*>(address);
    if (stream == nullptr || find_allocation(word) == nullptr || address % 4 != 0) return cudaErrorInvalidValue;
    return enqueue(*stream, {cudaGraphNodeTypeEmpty, [=] { return std::make_unique<AwaitWord>(word, value, flags); }});
  });
}

}  // namespace tutti::cudart

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return tutti::cudart::copy({to, from, bytes, kind, false}, nullptr);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return tutti::cudart::copy({to, from, bytes, kind, true}, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  using tutti::cudart::is_device;
  if (!is_device(to_device) || !is_device(from_device)) return tutti::cudart::keep(cudaErrorInvalidDevice);
  return tutti::cudart::copy({to, from, bytes, cudaMemcpyDeviceToDevice, true}, stream);
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) { return tutti::cudart::fill(to, value, bytes, nullptr); }

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return tutti::cudart::fill(to, value, bytes, stream);
}

}  // extern "C"
