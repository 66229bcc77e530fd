#include "tests/ptx/runtime/kernel.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "src/base/config.h"
#include "tests/ptx/runtime/memory.h"
#include "tests/ptx/runtime/pageable.h"
#include "tests/ptx/runtime/stream.h"

namespace tutti::cudart {
namespace {

constexpr std::uint32_t kSharedBytesByDefault = 49152;

// Names of the structures that nvcc embeds.
struct Wrapper {
  int magic, version;
  const unsigned char* data;
  void* file;
};
struct Header {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;
};
constexpr int kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kHeaderMagic = 0xba55ed50;

std::map<const void*, Kernel>& kernels() {
  static auto& all = *new std::map<const void*, Kernel>;
  return all;
}

cudaError_t error_of(ptx::FaultKind kind) {
  switch (kind) {
    case ptx::FaultKind::bounds:
    case ptx::FaultKind::use_after_free:
    case ptx::FaultKind::access_denied: return cudaErrorIllegalAddress;
    case ptx::FaultKind::alignment: return cudaErrorMisalignedAddress;
    case ptx::FaultKind::state_space: return cudaErrorInvalidAddressSpace;
    case ptx::FaultKind::trap:
    case ptx::FaultKind::mask:
    case ptx::FaultKind::barrier: return cudaErrorIllegalInstruction;
    case ptx::FaultKind::deadlock: return cudaErrorLaunchTimeout;
    default: return cudaErrorLaunchFailure;
  }
}

void fail(int device, cudaError_t error, const std::string& text) {
  report("device %d: %s: %s", device, runtime_name(error), text.c_str());
  const Lock lock(engine().mutex());
  DeviceState& state = device_state(device);
  if (state.fault == cudaSuccess) state.fault = error;
  engine().fail(device);
}

// One execution of a kernel. The machine's thread announces its end.
class KernelRun final : public Work {
 public:
  explicit KernelRun(std::shared_ptr<const ptx::KernelLaunch> launch) : launch_(std::move(launch)) {}

  bool advance() override {
    if (!started_) start();
    return ended_->load(std::memory_order_acquire);
  }
  bool is_kernel() const override { return true; }
  std::string name() const override { return launch_->kernel; }

 private:
  void start() {
    started_ = true;
    const int device = launch_->module->device();
    const Status status =
        running_machine().start(*launch_, [ended = ended_, device](const std::optional<ptx::Fault>& fault) {
          if (fault) fail(device, error_of(fault->kind), fault->text);
          ended->store(true, std::memory_order_release);
          engine().look_again();
        });
    if (status.ok()) return;
    fail(device, cudaErrorLaunchFailure, status.message());
    ended_->store(true, std::memory_order_release);
  }
  static ptx::Machine& running_machine() {
    const Lock lock(engine().mutex());
    return machine();
  }

  const std::shared_ptr<const ptx::KernelLaunch> launch_;
  const std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
  bool started_ = false;
};

LoadedKernel refused(cudaError_t error, const std::string& text) {
  report("%s", text.c_str());
  return {error, nullptr};
}

std::vector<std::byte> pack(const ptx::KernelInfo& info, void** arguments) {
  std::vector<std::byte> packed(info.parameter_bytes);
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    const ptx::KernelParameter& parameter = info.parameters[i];
    std::memcpy(packed.data() + parameter.offset, arguments[i], parameter.bytes);
  }
  return packed;
}

std::uint64_t volume(const dim3& extent) { return std::uint64_t{extent.x} * extent.y * extent.z; }

// Source: CUDA programming guide, "Technical specifications per compute capability"; CUDA driver API, cuLaunchKernel.
cudaError_t check(const KernelRequest& request, const Kernel::OnDevice& kernel) {
  const dim3 &grid = request.grid, &block = request.block;
  if (volume(grid) == 0 || volume(block) == 0) return cudaErrorInvalidConfiguration;
  if (grid.x > 0x7fffffffU || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || volume(block) > 1024) return cudaErrorInvalidConfiguration;
  if (request.arguments == nullptr && !kernel.info->parameters.empty()) return cudaErrorInvalidValue;
  const std::size_t most =
      std::max<std::size_t>(kernel.dynamic_shared_bytes_max, kSharedBytesByDefault - kernel.info->shared_bytes);
  if (request.dynamic_shared_bytes > most) return cudaErrorInvalidValue;
  const auto threads = static_cast<std::uint32_t>(volume(block));
  const std::uint32_t fit = machine().blocks_per_multiprocessor(
      *kernel.module, *kernel.info, threads, static_cast<std::uint32_t>(request.dynamic_shared_bytes));
  if (threads > kernel.info->threads_per_block_max || fit == 0) return cudaErrorLaunchOutOfResources;
  if (request.cooperative && volume(grid) > std::uint64_t{fit} * static_cast<unsigned>(node_options().multiprocessors))
    return cudaErrorCooperativeLaunchTooLarge;
  return cudaSuccess;
}

ptx::MachineOptions machine_options() {
  ptx::MachineOptions options;
  const Environment environment = Environment::of_process();
  const auto number = [&environment](const char* name, long long fallback) {
    const auto value = environment.get(name);
    return value ? std::atoll(value->c_str()) : fallback;
  };
  options.seed = static_cast<std::uint64_t>(number("TUTTI_PTX_SEED", 1));
  options.deadlock_ms = number("TUTTI_PTX_DEADLOCK_MS", options.deadlock_ms);
  options.detects_races = number("TUTTI_PTX_RACES", 1) != 0;
  options.buffers_stores = options.loads_stale = number("TUTTI_PTX_WEAK", 1) != 0;
  return options;
}

ptx::Mutation mutation() {
  const Environment environment = Environment::of_process();
  return {environment.get("TUTTI_PTX_MUTANT").value_or(""), environment.get("TUTTI_PTX_EXECUTED").value_or("")};
}

}  // namespace

ptx::Machine& machine() {
  static ptx::Machine& instance = *[] {
    ptx::DeviceLimits limits;
    limits.multiprocessors = static_cast<std::uint32_t>(node_options().multiprocessors);
    const std::vector<ptx::DeviceLimits> all(static_cast<std::size_t>(device_count()), limits);
    return new ptx::Machine(address_space(), all, machine_options());
  }();
  return instance;
}

Binary* register_binary(const void* wrapper) {
  const auto* outer = static_cast<const Wrapper*>(wrapper);
  auto* binary = new Binary;
  if (outer->magic != kWrapperMagic) {
    report("device code has the unknown format %x", static_cast<unsigned>(outer->magic));
    return binary;
  }
  Header header;
  std::memcpy(&header, outer->data, sizeof header);
  if (header.magic == kHeaderMagic)
    binary->image = {reinterpret_cast<const char*>(outer->data), header.header_bytes + header.bytes};
  return binary;
}

void register_kernel(Binary* binary, const void* stub, const char* name) {
  const Lock lock(engine().mutex());
  kernels()[stub] = {binary, name, {}};
}

Kernel* find_kernel(const void* stub) {
  const auto found = kernels().find(stub);
  return found == kernels().end() ? nullptr : &found->second;
}

LoadedKernel load(Lock& lock, Kernel& kernel, int device) {
  const auto known = kernel.loaded.find(device);
  if (known != kernel.loaded.end()) return {cudaSuccess, &known->second};
  if (!node_options().loads_eagerly)
    engine().await(lock, "loading " + kernel.name, [device] { return !engine().runs_kernel(device); });
  Binary& binary = *kernel.binary;
  if (binary.program == nullptr) {
    auto parsed = ptx::Program::parse(binary.image.substr(std::min(binary.image.find(".version"), binary.image.size())),
                                      kernel.name, mutation());
    if (!parsed.ok()) return refused(cudaErrorInvalidKernelImage, std::move(parsed).status().message());
    binary.program = std::move(parsed).value();
  }
  std::shared_ptr<const ptx::Module>& module = binary.modules[device];
  if (module == nullptr) {
    auto made = ptx::Module::load(binary.program, address_space(), device);
    if (!made.ok()) return refused(cudaErrorInvalidKernelImage, std::move(made).status().message());
    module = std::move(made).value();
  }
  const ptx::KernelInfo* info = binary.program->find_kernel(kernel.name);
  if (info == nullptr) return refused(cudaErrorInvalidDeviceFunction, "the PTX has no kernel " + kernel.name);
  kernel.loaded[device] = {module, info, 0};
  return {cudaSuccess, &kernel.loaded[device]};
}

cudaError_t launch(Lock& lock, const KernelRequest& request, cudaStream_t handle, DeviceState& current) {
  Stream* stream = stream_of(handle, current);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (request.kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  if (stream->device != current.ordinal) return cudaErrorInvalidResourceHandle;
  const auto [error, kernel] = load(lock, *request.kernel, current.ordinal);
  if (error != cudaSuccess) return error;
  const cudaError_t refusal = check(request, *kernel);
  if (refusal != cudaSuccess) return refusal;
  show_pageable_memory();
  auto made = std::make_shared<ptx::KernelLaunch>();
  made->module = kernel->module;
  made->kernel = kernel->info->name;
  made->grid = {request.grid.x, request.grid.y, request.grid.z};
  made->block = {request.block.x, request.block.y, request.block.z};
  made->dynamic_shared_bytes = static_cast<std::uint32_t>(request.dynamic_shared_bytes);
  made->cooperative = request.cooperative;
  made->parameters = pack(*kernel->info, request.arguments);
  return enqueue(*stream, {cudaGraphNodeTypeKernel, [made] { return std::make_unique<KernelRun>(made); }});
}

}  // namespace tutti::cudart
