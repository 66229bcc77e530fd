#include "src/nccl/memory.h"

#include <cstring>

#include "src/nccl/environment.h"

namespace tutti::nccl {

Outcome check_memory() {
  const std::string memory = memory_of_environment();
  if (memory == "host") return {};
  if (memory.empty()) {
    return invalid_usage("no CUDA executor in this build: set TUTTI_NCCL_MEMORY=host to serve host memory");
  }
  return invalid_usage("TUTTI_NCCL_MEMORY is \"" + memory +
                       "\": set it to host, the only memory that this build serves");
}

tutti_comm_options options_for(const Settings& settings) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  if (!settings.name.empty()) options.name = settings.name.c_str();
  return options;
}

int current_device() { return 0; }

tutti_stream stream_for(cudaStream_t, tutti_stream own) { return own; }

Outcome allocate(void** memory, std::size_t size) {
  *memory = nullptr;
  return size == 0 ? Outcome() : outcome_of(tutti_mem_alloc(memory, size));
}

Outcome release(void* memory) { return outcome_of(tutti_mem_free(memory)); }

void read_scalar(void* to, const void* scalar, std::size_t size) { std::memcpy(to, scalar, size); }

}  // namespace tutti::nccl
