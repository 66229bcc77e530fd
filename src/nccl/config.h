// Configuration of a communicator: an ncclConfig_t of any version, checked and completed.
#pragma once

#include <string>

#include "src/nccl/abi.h"
#include "src/nccl/compression.h"
#include "src/nccl/errors.h"

namespace tutti::nccl {

// Non-blocking: calls return ncclInProgress at once, and ncclCommGetAsyncError tells when they are done.
enum class Mode { blocking, non_blocking };

struct Settings {
  Mode mode = Mode::blocking;
  std::string name;
  CompressionRule compression;
  std::string memory = "host";  // Where buffers lie: options.memory of tutti.h. See memory.h.
};

// A null config asks for the defaults. Fields that this version does not know are ignored; those that speak of GPUs and
// networks are checked, and have no effect.
Outcome read_config(const ncclConfig_t* config, Settings& settings);

}  // namespace tutti::nccl
