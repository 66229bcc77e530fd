#include "src/executor/cuda/driver.h"

#include <cuda_runtime.h>

#include <type_traits>

namespace tutti {
namespace {

constexpr unsigned kAsOf = 12000;  // Version of the driver interface that is requested.
constexpr unsigned kMulticastAsOf = 12010;

#if CUDART_VERSION >= 12050
cudaError_t look_up(const char* name, void** function, unsigned version, cudaDriverEntryPointQueryResult* found) {
  return cudaGetDriverEntryPointByVersion(name, function, version, cudaEnableDefault, found);
}
#else  // Older runtimes return the version of their headers, which is 12 as well.
cudaError_t look_up(const char* name, void** function, unsigned, cudaDriverEntryPointQueryResult* found) {
  static_assert(CUDART_VERSION >= 12020, "multicast needs the toolkit of CUDA 12.2 or newer");
  return cudaGetDriverEntryPoint(name, function, cudaEnableDefault, found);
}
#endif

template <unsigned kVersion = kAsOf>
void* find_in_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  if (look_up(name, &function, kVersion, &found) != cudaSuccess) cudaGetLastError();
  return found == cudaDriverEntryPointSuccess ? function : nullptr;
}

// Type of cuGetErrorString and cuGetErrorName; null without a driver.
using FindWords = decltype(&cuGetErrorString);

const char* error_text(CUresult error, FindWords find) {
  const char* words = nullptr;
  return find != nullptr && find(error, &words) == CUDA_SUCCESS ? words : nullptr;
}

}  // namespace

int driver_version() {
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) return version;
  cudaGetLastError();
  return 0;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status no_driver() {
  return unsupported("there is no NVIDIA driver on this machine (libcuda.so.1): install one, or use host memory");
}

Status missing_in_driver(const char* function) {
  const int version = driver_version();
  if (version == 0) return no_driver().during(std::string("looking for ") + function);
  return unsupported("the NVIDIA driver, which is for CUDA " + version_text(version) + ", has no " + function +
                     ": install a newer driver");
}

Status driver_status(CUresult result, const char* function) {
  if (result == CUDA_SUCCESS) return {};
  static const auto find_words = reinterpret_cast<FindWords>(find_in_driver("cuGetErrorString"));
  static const auto find_name = reinterpret_cast<FindWords>(find_in_driver("cuGetErrorName"));
  const char* words = error_text(result, find_words);
  const char* name = error_text(result, find_name);
  return {Code::system, std::string(function) + ": " + (words == nullptr ? "unknown error" : words) + " (" +
                            (name == nullptr ? "" : std::string(name) + ", ") +
                            std::to_string(static_cast<int>(result)) + ")"};
}

const Driver& driver() {
  static_assert(std::is_trivially_destructible_v<Driver>);
  static const Driver found = {.find = find_in_driver, .find_of_12_1 = find_in_driver<kMulticastAsOf>};
  return found;
}

}  // namespace tutti
