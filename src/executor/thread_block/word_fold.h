// The fold of messages in words of LL, in registers. Host and device compile this source. Results are bit-identical to
// those of fold.h.
#pragma once

#include "src/executor/thread_block/fold.h"

namespace tutti {

// Maximum operands of a fold that LlCall runs.
inline constexpr std::uint32_t kMaxLlInputs = 8;

// One word of each operand of a fold.
struct LlWords {
  std::uint64_t word[kMaxLlInputs] = {};
};

// Not inlined, like fold_as().
template <typename T, Reduction kReduction>
TUTTI_HOST_DEVICE [[gnu::noinline]] std::uint64_t fold_words_as(LlWords in, std::uint32_t inputs, double scale,
                                                                std::uint32_t ranks) {
  using Element = Arithmetic<T, kReduction, KernelScalar>;
  constexpr std::uint32_t kElements = sizeof(std::uint64_t) / sizeof(T);
  Bits<T> bits[kElements];
  typename Element::Value values[kElements];
  std::memcpy(bits, &in.word[0], sizeof bits);
  for (std::uint32_t e = 0; e < kElements; ++e) values[e] = Element::read(bits[e]);
  TUTTI_UNROLLED
  for (std::uint32_t i = 1; i < kMaxLlInputs; ++i) {
    if (i >= inputs) break;
    std::memcpy(bits, &in.word[i], sizeof bits);
    for (std::uint32_t e = 0; e < kElements; ++e) values[e] = Element::combine(values[e], Element::read(bits[e]));
  }
  for (std::uint32_t e = 0; e < kElements; ++e) {
    if constexpr (kReduction == Reduction::avg) values[e] = Element::divide(values[e], ranks);
    if constexpr (kReduction == Reduction::sum && Format<T>::is_float)
      values[e] = Element::multiply(values[e], static_cast<Accumulator<T>>(scale));
    bits[e] = Element::write(values[e]);
  }
  std::uint64_t word;
  std::memcpy(&word, bits, sizeof word);
  return word;
}

// Folds words of a step. All reductions but pre_mul_sum.
class WordFold {
 public:
  TUTTI_HOST_DEVICE WordFold(const FoldTask& task, std::uint32_t inputs, bool complete) : inputs_(inputs) {
    const FoldForm form = form_of(task.type, task.reduction);
    FoldTask same = task;
    same.type = form.type;
    same.reduction = form.reduction;
    copies_ = inputs == 1 && !divides(same, complete);
    task_ = simplest_equivalent(same, complete);
  }

  TUTTI_HOST_DEVICE std::uint64_t result(const LlWords& in) const {
    if (copies_) return in.word[0];
    if (is_bitwise(task_.reduction)) return bitwise(in);
    switch (task_.type) {
      case DataType::int8: return fold_as<std::int8_t>(in);
      case DataType::uint8: return fold_as<std::uint8_t>(in);
      case DataType::int16: return fold_as<std::int16_t>(in);
      case DataType::uint16: return fold_as<std::uint16_t>(in);
      case DataType::int32: return fold_as<std::int32_t>(in);
      case DataType::uint32: return fold_as<std::uint32_t>(in);
      case DataType::int64: return fold_as<std::int64_t>(in);
      case DataType::uint64: return fold_as<std::uint64_t>(in);
      case DataType::float16: return fold_as<Float16>(in);
      case DataType::bfloat16: return fold_as<BFloat16>(in);
      case DataType::float32: return fold_as<float>(in);
      case DataType::float64: return fold_as<double>(in);
      case DataType::float8_e4m3: return fold_as<Float8E4M3>(in);
      case DataType::float8_e5m2: return fold_as<Float8E5M2>(in);
      default: return 0;  // See thread_block_supports().
    }
  }

 private:
  template <typename T>
  TUTTI_HOST_DEVICE std::uint64_t fold_as(const LlWords& in) const {
    switch (task_.reduction) {
      case Reduction::sum: return fold_words_as<Wrapping<T>, Reduction::sum>(in, inputs_, task_.scale, task_.ranks);
      case Reduction::prod: return fold_words_as<Wrapping<T>, Reduction::prod>(in, inputs_, task_.scale, task_.ranks);
      case Reduction::min: return fold_words_as<T, Reduction::min>(in, inputs_, task_.scale, task_.ranks);
      case Reduction::max: return fold_words_as<T, Reduction::max>(in, inputs_, task_.scale, task_.ranks);
      case Reduction::avg: return fold_words_as<T, Reduction::avg>(in, inputs_, task_.scale, task_.ranks);
      default: return 0;
    }
  }

  TUTTI_HOST_DEVICE std::uint64_t bitwise(const LlWords& in) const {
    using Word = std::uint64_t;
    if (task_.reduction == Reduction::band) return fold_words_as<Word, Reduction::band>(in, inputs_, 1, 1);
    if (task_.reduction == Reduction::bor) return fold_words_as<Word, Reduction::bor>(in, inputs_, 1, 1);
    return fold_words_as<Word, Reduction::bxor>(in, inputs_, 1, 1);
  }

  FoldTask task_;
  std::uint32_t inputs_;
  bool copies_;
};

}  // namespace tutti
