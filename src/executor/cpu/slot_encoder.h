// Between messages, floats, and the elements of a tensor: to nearest, by random numbers, and with what rounding takes
// kept, so that it is added the next time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/types.h"
#include "src/compression/codec.h"

namespace tutti {

class SlotEncoder {
 public:
  // `type`: of the tensor; one that travels so.
  SlotEncoder(CompressionFormat format, DataType type);

  std::uint64_t group_bytes() const { return group_bytes_; }
  std::uint64_t element_bytes() const { return element_bytes_; }
  const GroupRange& range() const { return range_; }

  // Elements in memory, which may end within a group.
  void load(const std::byte* elements, std::uint64_t count, float* values) const;
  void store(const float* values, std::uint64_t count, std::byte* elements) const;

  // In a codec's words; and by random numbers.
  void decode(const std::byte* message, std::uint64_t count, float* values) const;
  void encode(const float* values, std::uint64_t count, std::byte* message) const;
  void encode(const float* values, std::uint64_t count, std::byte* message, const Dither& dither) const;
  // The same of elements that a tensor holds. Groups that were decoded from a message before give its bytes.
  void encode_held(const float* values, std::uint64_t count, std::byte* message, const Dither& dither) const;

  // losses[i] += terms * (values[i] - what the message says of it). Where that is not finite nothing is added.
  void add_losses(const float* values, const std::byte* message, std::uint64_t count, float terms, float* losses) const;
  // The same of elements that a tensor holds: none of what was decoded before is lost.
  void add_losses_held(const float* values, const std::byte* message, std::uint64_t count, float terms,
                       float* losses) const;

  // held = what a message says of input + residual, and residual = the rest; of one block of a tensor. `dither` null:
  // to nearest. A residual that is not finite counts as 0; where the sum or what a message says of it is not, the
  // residual stays. `held` may be `input`.
  void correct(const std::byte* input, std::uint64_t count, float* residual, std::byte* held,
               const Dither* dither) const;

 private:
  void add_losses(const float* values, const std::byte* message, std::uint64_t count, float terms, float* losses,
                  bool held) const;
  // As the tensor holds them; a group at most.
  void hold(float* values, std::uint64_t count) const;

  Codec codec_;
  Codec memory_ = {};  // Of elements of 16 bits.
  GroupRange range_;
  std::uint64_t group_bytes_;
  std::uint64_t element_bytes_;
};

}  // namespace tutti
