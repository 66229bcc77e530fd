#include <cuda_runtime.h>

#include <cstring>

#include "src/compression/group.h"
#include "tests/compression/cuda_codec.h"

namespace tutti::test {
namespace {

constexpr unsigned kThreads = 128;

template <class Form>
__global__ void encode_groups(const float* values, std::uint64_t count, std::byte* encoded, GroupRange range,
                              Dither dither, int rounds_randomly) {
  const std::uint64_t group = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t first = group * kCompressionGroup;
  if (first >= count) return;
  const auto length = static_cast<std::uint32_t>(count - first < kCompressionGroup ? count - first : kCompressionGroup);
  dither.first += first;
  encode_group<Form>(values + first, length, encoded + group * kGroupBytes<Form>, range,
                     rounds_randomly != 0 ? &dither : nullptr);
}

template <class Form>
__global__ void decode_groups(const std::byte* encoded, std::uint64_t count, float* values) {
  const std::uint64_t group = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t first = group * kCompressionGroup;
  if (first >= count) return;
  const auto length = static_cast<std::uint32_t>(count - first < kCompressionGroup ? count - first : kCompressionGroup);
  decode_group<Form>(encoded + group * kGroupBytes<Form>, length, values + first);
}

// Memory of host and GPU, filled from `from` if that is given.
class Shared {
 public:
  Shared(const void* from, std::size_t bytes) : bytes_(bytes) {
    if (cudaMallocManaged(&memory_, bytes + 1) != cudaSuccess) memory_ = nullptr;
    if (memory_ != nullptr && from != nullptr) std::memcpy(memory_, from, bytes);
  }
  ~Shared() { cudaFree(memory_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  bool ok() const { return memory_ != nullptr; }
  bool finish(void* to) const {
    if (cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return false;
    std::memcpy(to, memory_, bytes_);
    return true;
  }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

std::uint64_t groups_of(std::uint64_t count) { return (count + kCompressionGroup - 1) / kCompressionGroup; }
unsigned blocks_of(std::uint64_t count) { return static_cast<unsigned>((groups_of(count) + kThreads - 1) / kThreads); }

}  // namespace

bool encode_on_gpu(CompressionFormat format, const float* values, std::uint64_t count, std::byte* encoded,
                   GroupRange range, const Dither* dither) {
  const Shared from(values, count * sizeof(float));
  const Shared to(nullptr, groups_of(count) * compressed_bytes(format));
  if (!from.ok() || !to.ok()) return false;
  visit_form(format, [&]<class Form>(Type<Form>) {
    encode_groups<Form><<<blocks_of(count), kThreads>>>(from.as<float>(), count, to.as<std::byte>(), range,
                                                        dither == nullptr ? Dither{} : *dither, dither != nullptr);
  });
  return to.finish(encoded);
}

bool decode_on_gpu(CompressionFormat format, const std::byte* encoded, std::uint64_t count, float* values) {
  const Shared from(encoded, groups_of(count) * compressed_bytes(format));
  const Shared to(nullptr, count * sizeof(float));
  if (!from.ok() || !to.ok()) return false;
  visit_form(format, [&]<class Form>(Type<Form>) {
    decode_groups<Form><<<blocks_of(count), kThreads>>>(from.as<std::byte>(), count, to.as<float>());
  });
  return to.finish(values);
}

}  // namespace tutti::test
