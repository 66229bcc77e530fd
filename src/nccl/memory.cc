#include "src/nccl/memory.h"

#include "src/base/nccl_settings.h"
#include "src/nccl/environment.h"

namespace tutti::nccl {
namespace {

constexpr const char* kCuda = "cuda";
constexpr int kNoTimeout = -1;

bool is_host() { return variable("TUTTI_NCCL_MEMORY") == kHostMemory; }

}  // namespace

Outcome check_memory() {
  int device = 0;
  return current_device(device);
}

Outcome current_device(int& device) {
  device = 0;
  if (is_host()) return {};
  const Status allowed = check_nccl_memory(variable("TUTTI_NCCL_MEMORY"));
  if (!allowed.ok()) return invalid_usage(allowed.message());
  Outcome found = outcome_of(tutti_current_device(&device));
  if (!found.failed()) return {};
  const std::string function = "tutti_current_device: ";  // The caller has called another function.
  if (found.why.starts_with(function)) found.why.erase(0, function.size());
  found.why += " (set TUTTI_NCCL_MEMORY=host to run without a GPU)";
  return found;
}

std::string memory_on(int device) {
  return is_host() ? kHostMemory : std::string(kCuda).append(":").append(std::to_string(device));
}

tutti_comm_options options_for(const Settings& settings) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  if (!settings.name.empty()) options.name = settings.name.c_str();
  options.memory = settings.memory.c_str();
  options.tuning = &settings.tuning;
  options.traffic_class = settings.traffic_class;
  if (variable("TUTTI_TIMEOUT_MS").empty()) options.timeout_ms = kNoTimeout;
  if (variable("TUTTI_INIT_TIMEOUT_MS").empty()) options.init_timeout_ms = kNoTimeout;
  return options;
}

bool enqueues(const Settings& settings) { return settings.memory != kHostMemory; }

tutti_stream stream_for(const Communicator& communicator, cudaStream_t given) {
  return enqueues(communicator.settings) ? reinterpret_cast<tutti_stream>(given) : communicator.stream();
}

int device_of(const Communicator& communicator) {
  int device = -1;
  const tutti_status found =
      communicator.with_comm([&device](tutti_comm comm) { return tutti_comm_device(comm, &device); });
  const bool known = found == tutti_ok && device >= 0;
  return known ? device : communicator.device;
}

Outcome allocate(void** memory, std::size_t size) {
  *memory = nullptr;
  if (size == 0) return {};
  return outcome_of(is_host() ? tutti_mem_alloc(memory, size) : tutti_mem_alloc_cuda(memory, size));
}

Outcome release(void* memory) { return outcome_of(tutti_mem_free(memory)); }

}  // namespace tutti::nccl
