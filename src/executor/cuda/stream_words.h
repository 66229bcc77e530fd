// Words that streams write and wait for: functions of the driver, which is not linked.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "src/base/status.h"

namespace tutti {

// Any thread, with the stream's device current.
class StreamWords {
 public:
  // Looked up once. Where the driver has none, the functions below say so.
  static const StreamWords& of_driver();

  Status put(std::uint32_t* word, std::uint32_t value, cudaStream_t stream) const;
  Status hold(const std::uint32_t* word, std::uint32_t value, cudaStream_t stream) const;

 private:
  StreamWords();

  decltype(&cuStreamWriteValue32) write_ = nullptr;
  decltype(&cuStreamWaitValue32) wait_ = nullptr;
};

}  // namespace tutti
