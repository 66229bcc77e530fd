#include "tests/ptx/runtime/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "src/base/config.h"
#include "tests/ptx/runtime/machine_work.h"
#include "tests/ptx/runtime/memory.h"
#include "tests/ptx/runtime/node.h"
#include "tests/ptx/runtime/pageable.h"
#include "tests/ptx/runtime/stream.h"

namespace tutti::cudart {
namespace {

constexpr std::uint32_t kSharedBytesByDefault = 49152;
constexpr std::uint64_t kPortableClusterBlocks = 8;

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

// One execution of a kernel.
class KernelRun final : public MachineWork {
 public:
  explicit KernelRun(std::shared_ptr<const ptx::KernelLaunch> launch)
      : MachineWork(launch->module->device()), launch_(std::move(launch)) {}
  bool is_kernel() const override { return true; }
  std::string name() const override { return launch_->kernel; }

 private:
  Status start(ptx::Machine& machine, ptx::LaunchDone done) override {
    ptx::KernelLaunch launch = *launch_;
    launch.order = order;
    return machine.start(std::move(launch), std::move(done));
  }

  const std::shared_ptr<const ptx::KernelLaunch> launch_;
};

// Name of a kernel without the hash in the names of anonymous namespaces, which depends on the architecture.
std::string plain_name(std::string name) {
  constexpr std::string_view kBegin = "_GLOBAL__N__";
  constexpr std::size_t kHashDigits = 8;
  const std::size_t found = name.find(kBegin);
  return found == std::string::npos ? name : name.erase(found + kBegin.size(), kHashDigits);
}

const ptx::KernelInfo* find_kernel_in(const ptx::Program& program, const std::string& name) {
  for (const ptx::KernelInfo& each : program.kernels())
    if (plain_name(each.name) == plain_name(name)) return &each;
  return nullptr;
}

// Returns the listed PTX whose first kernel is this one, or "".
std::string read_other_program(const std::string& kernel) {
  constexpr std::string_view kEntry = ".entry ";
  std::ifstream list(node_options().programs);
  for (std::string path; std::getline(list, path);) {
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t found = text.find(kEntry);
    if (found == std::string::npos) continue;
    const std::size_t begin = found + kEntry.size();
    if (plain_name(text.substr(begin, text.find('(', begin) - begin)) == plain_name(kernel)) return text;
  }
  return "";
}

// A device runs PTX of its own capability and of earlier ones. Source: CUDA programming guide, "PTX compatibility".
bool is_supported(const ptx::Program& program) {
  return std::atoi(program.target().c_str() + std::string_view("sm_").size()) <= node_options().capability;
}

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
  const dim3& cluster = request.cluster;
  if (volume(cluster) == 0 || volume(cluster) > kPortableClusterBlocks) return cudaErrorInvalidClusterSize;
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) return cudaErrorInvalidClusterSize;
  if (request.arguments == nullptr && !kernel.info->parameters.empty()) return cudaErrorInvalidValue;
  const std::size_t max =
      std::max<std::size_t>(kernel.dynamic_shared_bytes_max, kSharedBytesByDefault - kernel.info->shared_bytes);
  if (request.dynamic_shared_bytes > max) return cudaErrorInvalidValue;
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
  options.counts = environment.get("TUTTI_PTX_COUNTS").value_or("");
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
    const bool replaces = !node_options().programs.empty();
    if (replaces) binary.other = read_other_program(kernel.name);
    if (replaces && binary.other.empty())
      return refused(cudaErrorNoKernelImageForDevice, "no file of TUTTI_PTX_PROGRAMS has " + kernel.name);
    const std::string_view image = replaces ? binary.other : binary.image;
    auto parsed =
        ptx::Program::parse(image.substr(std::min(image.find(".version"), image.size())), kernel.name, mutation());
    if (!parsed.ok()) return refused(cudaErrorInvalidKernelImage, std::move(parsed).status().message());
    if (replaces && !is_supported(*parsed.value()))
      return refused(cudaErrorNoKernelImageForDevice, "the PTX is for " + parsed.value()->target());
    binary.program = std::move(parsed).value();
  }
  std::shared_ptr<const ptx::Module>& module = binary.modules[device];
  if (module == nullptr) {
    auto made = ptx::Module::load(binary.program, address_space(), device);
    if (!made.ok()) return refused(cudaErrorInvalidKernelImage, std::move(made).status().message());
    module = std::move(made).value();
  }
  const ptx::KernelInfo* info = find_kernel_in(*binary.program, kernel.name);
  if (info == nullptr) return refused(cudaErrorInvalidDeviceFunction, "the PTX has no kernel " + kernel.name);
  kernel.loaded[device] = {module, info, 0};
  return {cudaSuccess, &kernel.loaded[device]};
}

void reserve_local_memory(Lock& lock, DeviceState& device, const Kernel* kernel) {
  if (kernel == nullptr || device.fits_local_memory.count(kernel) != 0) return;
  engine().await(lock, "enlarging local memory", [tasks = last_tasks(device)] { return have_ended(tasks); });
  device.fits_local_memory.insert(kernel);
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
  const Kernel* const needs_local_memory = kernel->info->local_bytes > 0 ? request.kernel : nullptr;
  if (stream->capture == nullptr) reserve_local_memory(lock, current, needs_local_memory);
  show_pageable_memory();
  auto made = std::make_shared<ptx::KernelLaunch>();
  made->module = kernel->module;
  made->kernel = kernel->info->name;
  made->grid = {request.grid.x, request.grid.y, request.grid.z};
  made->block = {request.block.x, request.block.y, request.block.z};
  made->dynamic_shared_bytes = static_cast<std::uint32_t>(request.dynamic_shared_bytes);
  made->cooperative = request.cooperative;
  made->parameters = pack(*kernel->info, request.arguments);
  return enqueue(*stream,
                 {cudaGraphNodeTypeKernel, [made] { return std::make_unique<KernelRun>(made); }, needs_local_memory});
}

}  // namespace tutti::cudart
