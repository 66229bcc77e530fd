#include "src/executor/cpu/compressed_fold.h"

#include <algorithm>
#include <cstring>

namespace tutti {
struct CompressedFold::Stretch {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  alignas(64) float sum[kStretch];
  alignas(64) float operand[kStretch];
  alignas(64) std::byte message[kStretch * sizeof(float)];
};

CompressedFold::CompressedFold(CompressionFormat format, DataType type, Reduction reduction,
                               RoundedStores rounded_stores, const FoldKernels& kernels)
    : encoder_(format, type),
      fold_(kernels.find_fold(DataType::float32, reduction)),
      rounded_stores_(rounded_stores),
      averages_(reduction == Reduction::avg) {
  const bool adds = reduction == Reduction::sum || reduction == Reduction::avg || reduction == Reduction::pre_mul_sum;
  if (adds && type == DataType::float32) sum_ = kernels.find_compressed_sum(format);
}

void CompressedFold::operator()(const FoldArguments& arguments, const Encoded& encoded) const {
  Stretch stretch;
  stretch.begin = sum_groups(arguments, encoded);
  const bool as_it_is = arguments.source_count == 1 && encoded.sources[0] != 0;
  if (as_it_is) return pass_on(arguments, encoded, stretch.begin);
  for (; stretch.begin < arguments.count; stretch.begin += kStretch) {
    stretch.count = std::min(kStretch, arguments.count - stretch.begin);
    deliver(arguments, encoded, sum(arguments, encoded, stretch), stretch);
  }
}

// Sums whole float32 groups in registers and returns the number of elements done. Forwarded messages are copied by
// pass_on().
std::uint64_t CompressedFold::sum_groups(const FoldArguments& arguments, const Encoded& encoded) const {
  if (sum_ == nullptr || arguments.own != FoldArguments::kNone) return 0;
  const bool passed = arguments.source_count == 1 && encoded.sources[0] != 0;
  if (!passed && (encoded.dither != nullptr || encoded.quantization_errors != nullptr)) return 0;
  const auto in_memory = [](std::uint8_t message) { return message == 0; };
  if (passed && std::none_of(encoded.targets, encoded.targets + arguments.target_count, in_memory)) return 0;
  FoldArguments groups = arguments;
  groups.count = arguments.count / kCompressionGroup * kCompressionGroup;
  sum_({.fold = groups,
        .encoded = encoded,
        .range = encoder_.range(),
        .divides = !passed && averages_ && arguments.complete && arguments.ranks > 1,
        .kept = !passed && rounds_stores(arguments, encoded),
        .forwards = passed});
  return groups.count;
}

// Copies a forwarded message to all message targets. Decodes it to memory targets from element `begin` on, the first of
// a group.
void CompressedFold::pass_on(const FoldArguments& arguments, const Encoded& encoded, std::uint64_t begin) const {
  const std::byte* message = arguments.sources[0];
  const std::uint64_t bytes = compression_groups(arguments.count) * encoder_.group_bytes();
  alignas(64) float values[kStretch];
  for (std::uint32_t k = 0; k < arguments.target_count; ++k) {
    std::byte* target = arguments.targets[k];
    if (encoded.targets[k] != 0) {
      std::memcpy(target, message, bytes);
      continue;
    }
    for (std::uint64_t i = begin; i < arguments.count; i += kStretch) {
      const std::uint64_t count = std::min(kStretch, arguments.count - i);
      encoder_.decode(message + i / kCompressionGroup * encoder_.group_bytes(), count, values);
      encoder_.store(values, count, target + i * encoder_.element_bytes());
    }
  }
}

// Returns a source's elements as float32: converted into `room`, or in place.
const float* CompressedFold::load(const std::byte* source, bool encoded, const Stretch& stretch, float* room) const {
  if (encoded) {
    encoder_.decode(source + stretch.begin / kCompressionGroup * encoder_.group_bytes(), stretch.count, room);
    return room;
  }
  const std::byte* at = source + stretch.begin * encoder_.element_bytes();
  if (encoder_.element_bytes() == sizeof(float)) return reinterpret_cast<const float*>(at);
  encoder_.load(at, stretch.count, room);
  return room;
}

const float* CompressedFold::sum(const FoldArguments& arguments, const Encoded& encoded, Stretch& stretch) const {
  const float* first = load(arguments.sources[0], encoded.sources[0] != 0, stretch, stretch.sum);
  const bool alone = arguments.source_count == 1;
  if (alone && arguments.own == FoldArguments::kNone && !arguments.complete) return first;
  FoldArguments pair = arguments;
  const std::byte* sources[2] = {reinterpret_cast<const std::byte*>(first), nullptr};
  std::byte* const target = reinterpret_cast<std::byte*>(stretch.sum);
  pair.sources = sources;
  pair.targets = &target;
  pair.target_count = 1;
  pair.count = stretch.count;
  pair.fetched_sources = pair.streamed_targets = 0;
  if (alone) {
    fold_(pair);
    return stretch.sum;
  }
  pair.source_count = 2;
  for (std::uint32_t k = 1; k < arguments.source_count; ++k) {
    const float* next = load(arguments.sources[k], encoded.sources[k] != 0, stretch, stretch.operand);
    sources[1] = reinterpret_cast<const std::byte*>(next);
    pair.own = arguments.own == k ? 1 : k == 1 && arguments.own == 0 ? 0 : FoldArguments::kNone;
    pair.complete = arguments.complete && k + 1 == arguments.source_count;
    fold_(pair);
    sources[0] = target;
  }
  return stretch.sum;
}

bool CompressedFold::rounds_stores(const FoldArguments& arguments, const Encoded& encoded) const {
  if (rounded_stores_ == RoundedStores::sums) return arguments.complete;
  return rounded_stores_ == RoundedStores::copies && encoded.sources[0] == 0;
}

// Encodes one stretch. A single source in memory may have been decoded before. The error of an average counts once per
// term.
void CompressedFold::encode(const FoldArguments& arguments, const Encoded& encoded, const float* values,
                            const Stretch& stretch, std::byte* message) const {
  const bool held = arguments.source_count == 1;
  const Dither dither =
      encoded.dither == nullptr ? Dither{} : Dither{encoded.dither->seed, encoded.dither->first + stretch.begin};
  if (encoded.dither == nullptr) {
    encoder_.encode(values, stretch.count, message);
  } else if (held) {
    encoder_.encode_held(values, stretch.count, message, dither);
  } else {
    encoder_.encode(values, stretch.count, message, dither);
  }
  if (encoded.quantization_errors == nullptr) return;
  const float terms = averages_ && arguments.complete ? static_cast<float>(arguments.ranks) : 1;
  float* const quantization_errors = encoded.quantization_errors + stretch.begin;
  held ? encoder_.add_quantization_errors_held(values, message, stretch.count, terms, quantization_errors)
       : encoder_.add_quantization_errors(values, message, stretch.count, terms, quantization_errors);
}

void CompressedFold::deliver(const FoldArguments& arguments, const Encoded& encoded, const float* values,
                             Stretch& stretch) const {
  const std::uint64_t bytes = compression_groups(stretch.count) * encoder_.group_bytes();
  const std::uint64_t offset = stretch.begin / kCompressionGroup * encoder_.group_bytes();
  const bool kept = rounds_stores(arguments, encoded);
  const std::byte* message = nullptr;
  for (std::uint32_t k = 0; k < arguments.target_count; ++k) {
    if (encoded.targets[k] == 0) continue;
    std::byte* slot = arguments.targets[k] + offset;
    if (message != nullptr) {
      std::memcpy(slot, message, bytes);
      continue;
    }
    encode(arguments, encoded, values, stretch, slot);
    message = slot;
  }
  if (kept) {
    if (message == nullptr) {
      encode(arguments, encoded, values, stretch, stretch.message);
      message = stretch.message;
    }
    encoder_.decode(message, stretch.count, stretch.operand);
    values = stretch.operand;
  }
  for (std::uint32_t k = 0; k < arguments.target_count; ++k) {
    std::byte* const target = arguments.targets[k] + stretch.begin * encoder_.element_bytes();
    const bool there = target == reinterpret_cast<const std::byte*>(values);
    if (encoded.targets[k] == 0 && !there) encoder_.store(values, stretch.count, target);
  }
}

}  // namespace tutti
