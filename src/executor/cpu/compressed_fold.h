// Folds operands some of which are messages in a compression format: these are decoded as they are read, the fold is
// done in float32, and what is sent is encoded once. What is only passed on goes as it came. Whole groups of float32
// that are added up go through registers; all else goes through memory, a few groups at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/executor/cpu/compressed_sum.h"
#include "src/executor/cpu/slot_encoder.h"
#include "src/plan/step.h"

namespace tutti {

class CompressedFold {
 public:
  // `keeps`: what is stored as sent, see src/plan/step.h. `type`: float32, float16 or bfloat16.
  CompressedFold(CompressionFormat format, DataType type, Reduction reduction, Keeps keeps,
                 const FoldKernels& kernels = widest_fold_kernels());

  const SlotEncoder& encoder() const { return encoder_; }

  // As a FoldFunction. The message operands begin at the first element of a group.
  void operator()(const FoldArguments& arguments, const Encoded& encoded) const;

 private:
  static constexpr std::uint64_t kStretch =
      4 * kCompressionGroup;  // Elements at a time, which stay in the nearest cache.
  struct Stretch;

  std::uint64_t sum_groups(const FoldArguments& arguments, const Encoded& encoded) const;
  void pass_on(const FoldArguments& arguments, const Encoded& encoded, std::uint64_t begin) const;
  const float* sum(const FoldArguments& arguments, const Encoded& encoded, Stretch& stretch) const;
  const float* load(const std::byte* source, bool encoded, const Stretch& stretch, float* room) const;
  void deliver(const FoldArguments& arguments, const Encoded& encoded, const float* values, Stretch& stretch) const;
  void encode(const FoldArguments& arguments, const Encoded& encoded, const float* values, const Stretch& stretch,
              std::byte* message) const;
  bool keeps(const FoldArguments& arguments, const Encoded& encoded) const;

  SlotEncoder encoder_;
  FoldFunction fold_;
  CompressedSumFunction sum_ = nullptr;  // Of float32, where the reduction is a sum.
  Keeps keeps_;
  bool averages_;
};

}  // namespace tutti
