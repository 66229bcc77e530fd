#include "src/executor/cuda/stream_words.h"

#include <string>

#include "src/executor/cuda/driver.h"

namespace tutti {
namespace {

CUdeviceptr address_of(const std::uint32_t* word) { return reinterpret_cast<CUdeviceptr>(word); }

Status missing() {
  return unsupported(
      "the NVIDIA driver has no memory operations in streams, which ranks of several processes need that "
      "share a GPU: install a newer driver, or start MPS (nvidia-cuda-mps-control -d)");
}

Status driver_status(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return {};
  return Status(Code::system,
                std::string(call) + ": error " + std::to_string(static_cast<int>(result)) + " of CUDA's driver");
}

}  // namespace

StreamWords::StreamWords() {
  find_in_driver("cuStreamWriteValue32", write_);
  find_in_driver("cuStreamWaitValue32", wait_);
}

const StreamWords& StreamWords::of_driver() {
  static const StreamWords& words = *new StreamWords;  // Threads may outlive statics.
  return words;
}

Status StreamWords::put(std::uint32_t* word, std::uint32_t value, cudaStream_t stream) const {
  if (write_ == nullptr) return missing();
  return driver_status(write_(stream, address_of(word), value, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue32");
}

Status StreamWords::hold(const std::uint32_t* word, std::uint32_t value, cudaStream_t stream) const {
  if (wait_ == nullptr) return missing();
  return driver_status(wait_(stream, address_of(word), value, CU_STREAM_WAIT_VALUE_EQ), "cuStreamWaitValue32");
}

}  // namespace tutti
