// Converts between compressed messages, float32 and tensor elements. Rounds to nearest or stochastically, and can
// accumulate quantization errors for error feedback.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/types.h"
#include "src/compression/codec.h"

namespace tutti {

class SlotEncoder {
 public:
  // `type`: the tensor's type; must be compressible.
  SlotEncoder(CompressionFormat format, DataType type);

  std::uint64_t group_bytes() const { return group_bytes_; }
  std::uint64_t element_bytes() const { return element_bytes_; }
  const GroupRange& range() const { return range_; }

  // Convert tensor elements to float32 and back. `count` need not be a multiple of a group.
  void load(const std::byte* elements, std::uint64_t count, float* values) const;
  void store(const float* values, std::uint64_t count, std::byte* elements) const;

  // Encode and decode as Codec does; optionally with stochastic rounding.
  void decode(const std::byte* message, std::uint64_t count, float* values) const;
  void encode(const float* values, std::uint64_t count, std::byte* message) const;
  void encode(const float* values, std::uint64_t count, std::byte* message, const Dither& dither) const;
  // Like encode(), for values that the tensor's type represents exactly. Groups decoded from a message are encoded to
  // the same bytes.
  void encode_held(const float* values, std::uint64_t count, std::byte* message, const Dither& dither) const;

  // quantization_errors[i] += terms * (values[i] - decoded message[i]). Non-finite differences are skipped.
  void add_quantization_errors(const float* values, const std::byte* message, std::uint64_t count, float terms,
                               float* quantization_errors) const;
  // Like add_quantization_errors(), for values that the tensor's type represents exactly. Values that were decoded
  // before lose nothing.
  void add_quantization_errors_held(const float* values, const std::byte* message, std::uint64_t count, float terms,
                                    float* quantization_errors) const;

  // Error feedback for one block of a tensor. Sets `held` to the decoded encoding of input + residual, and `residual`
  // to the remaining difference. A null `dither` means round to nearest. A non-finite residual counts as 0. If the sum
  // or its decoded encoding is not finite, the residual stays unchanged. `held` may equal `input`.
  void apply_residual(const std::byte* input, std::uint64_t count, float* residual, std::byte* held,
                      const Dither* dither) const;

 private:
  void add_quantization_errors(const float* values, const std::byte* message, std::uint64_t count, float terms,
                               float* quantization_errors, bool held) const;
  // Rounds values to the tensor's type; at most one group.
  void hold(float* values, std::uint64_t count) const;

  Codec codec_;
  Codec memory_ = {};  // Codec of 16-bit elements in memory.
  GroupRange range_;
  std::uint64_t group_bytes_;
  std::uint64_t element_bytes_;
};

}  // namespace tutti
