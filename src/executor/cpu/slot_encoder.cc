#include "src/executor/cpu/slot_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tutti {
namespace {

constexpr std::uint64_t kMaxGroupBytes = kCompressionGroup * sizeof(float);

std::uint64_t in_group(std::uint64_t begin, std::uint64_t count) {
  return std::min<std::uint64_t>(kCompressionGroup, count - begin);
}

void add_differences(const float* values, const float* decoded, std::uint64_t count, float terms,
                     float* quantization_errors) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const float loss = terms * (values[i] - decoded[i]);
    quantization_errors[i] += std::isfinite(loss) ? loss : 0;
  }
}

}  // namespace

SlotEncoder::SlotEncoder(CompressionFormat format, DataType type)
    : codec_(find_codec(format)),
      range_(range_of(type)),
      group_bytes_(compressed_bytes(format)),
      element_bytes_(size_of(type)) {
  if (type != DataType::float32) memory_ = find_codec(memory_format(type));
}

void SlotEncoder::load(const std::byte* elements, std::uint64_t count, float* values) const {
  if (element_bytes_ == sizeof(float)) {
    std::memcpy(values, elements, count * sizeof(float));
    return;
  }
  const std::uint64_t whole = count / kCompressionGroup * kCompressionGroup;
  memory_.decode(elements, whole, values);
  if (whole == count) return;
  std::byte last[kMaxGroupBytes] = {};
  std::memcpy(last, elements + whole * element_bytes_, (count - whole) * element_bytes_);
  memory_.decode(last, count - whole, values + whole);
}

void SlotEncoder::store(const float* values, std::uint64_t count, std::byte* elements) const {
  if (element_bytes_ == sizeof(float)) {
    std::memcpy(elements, values, count * sizeof(float));
    return;
  }
  const std::uint64_t whole = count / kCompressionGroup * kCompressionGroup;
  memory_.encode(values, whole, elements, range_, nullptr);
  if (whole == count) return;
  std::byte last[kMaxGroupBytes];
  memory_.encode(values + whole, count - whole, last, range_, nullptr);
  std::memcpy(elements + whole * element_bytes_, last, (count - whole) * element_bytes_);
}

void SlotEncoder::decode(const std::byte* message, std::uint64_t count, float* values) const {
  codec_.decode(message, count, values);
}

void SlotEncoder::encode(const float* values, std::uint64_t count, std::byte* message) const {
  codec_.encode(values, count, message, range_, nullptr);
}

void SlotEncoder::hold(float* values, std::uint64_t count) const {
  if (element_bytes_ == sizeof(float)) return;
  std::byte elements[kMaxGroupBytes];
  store(values, count, elements);
  load(elements, count, values);
}

void SlotEncoder::encode(const float* values, std::uint64_t count, std::byte* message, const Dither& dither) const {
  codec_.encode(values, count, message, range_, &dither);
}

void SlotEncoder::encode_held(const float* values, std::uint64_t count, std::byte* message,
                              const Dither& dither) const {
  for (std::uint64_t begin = 0; begin < count; begin += kCompressionGroup, message += group_bytes_) {
    const std::uint64_t length = in_group(begin, count);
    float decoded[kCompressionGroup];
    codec_.encode(values + begin, length, message, range_, nullptr);
    codec_.decode(message, length, decoded);
    hold(decoded, length);
    if (std::memcmp(decoded, values + begin, length * sizeof(float)) == 0) continue;
    const Dither here = {dither.seed, dither.first + begin};
    codec_.encode(values + begin, length, message, range_, &here);
  }
}

void SlotEncoder::add_quantization_errors(const float* values, const std::byte* message, std::uint64_t count,
                                          float terms, float* quantization_errors) const {
  add_quantization_errors(values, message, count, terms, quantization_errors, false);
}

void SlotEncoder::add_quantization_errors_held(const float* values, const std::byte* message, std::uint64_t count,
                                               float terms, float* quantization_errors) const {
  add_quantization_errors(values, message, count, terms, quantization_errors, true);
}

void SlotEncoder::add_quantization_errors(const float* values, const std::byte* message, std::uint64_t count,
                                          float terms, float* quantization_errors, bool held) const {
  float decoded[kCompressionGroup];
  for (std::uint64_t begin = 0; begin < count; begin += kCompressionGroup, message += group_bytes_) {
    const std::uint64_t length = in_group(begin, count);
    codec_.decode(message, length, decoded);
    if (held) hold(decoded, length);
    add_differences(values + begin, decoded, length, terms, quantization_errors + begin);
  }
}

void SlotEncoder::apply_residual(const std::byte* input, std::uint64_t count, float* residual, std::byte* held,
                                 const Dither* dither) const {
  for (std::uint64_t begin = 0; begin < count; begin += kCompressionGroup) {
    const std::uint64_t length = in_group(begin, count);
    float* const rests = residual + begin;
    float values[kCompressionGroup], decoded[kCompressionGroup];
    std::byte message[kMaxGroupBytes];
    load(input + begin * element_bytes_, length, values);
    for (std::uint64_t i = 0; i < length; ++i) {
      rests[i] = std::isfinite(rests[i]) ? rests[i] : 0;
      values[i] += rests[i];
    }
    const Dither here = dither == nullptr ? Dither{} : Dither{dither->seed, dither->first + begin};
    codec_.encode(values, length, message, range_, dither == nullptr ? nullptr : &here);
    codec_.decode(message, length, decoded);
    for (std::uint64_t i = 0; i < length; ++i) {
      const float rest = values[i] - decoded[i];
      rests[i] = std::isfinite(rest) ? rest : rests[i];
    }
    store(decoded, length, held + begin * element_bytes_);
  }
}

}  // namespace tutti
