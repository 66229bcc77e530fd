// A fold with some operands that are compressed messages. Messages are decoded when read and encoded once when sent.
// The fold runs in float32. A message that is only forwarded is copied unchanged. Sums of whole float32 groups stay in
// registers. All other cases go through a buffer, a few groups at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/executor/cpu/compressed_sum.h"
#include "src/executor/cpu/slot_encoder.h"
#include "src/plan/step.h"

namespace tutti {

class CompressedFold {
 public:
  // `rounded_stores`: which stored values are rounded as sent (src/plan/step.h). `type`: float32, float16 or bfloat16.
  CompressedFold(CompressionFormat format, DataType type, Reduction reduction, RoundedStores rounded_stores,
                 const FoldKernels& kernels = widest_fold_kernels());

  const SlotEncoder& encoder() const { return encoder_; }

  // Same contract as a FoldFunction. Message operands must begin at the first element of a group.
  void operator()(const FoldArguments& arguments, const Encoded& encoded) const;

 private:
  static constexpr std::uint64_t kStretch = 4 * kCompressionGroup;  // Elements per iteration; fits the L1 cache.
  struct Stretch;

  std::uint64_t sum_groups(const FoldArguments& arguments, const Encoded& encoded) const;
  void pass_on(const FoldArguments& arguments, const Encoded& encoded, std::uint64_t begin) const;
  const float* sum(const FoldArguments& arguments, const Encoded& encoded, Stretch& stretch) const;
  const float* load(const std::byte* source, bool encoded, const Stretch& stretch, float* room) const;
  void deliver(const FoldArguments& arguments, const Encoded& encoded, const float* values, Stretch& stretch) const;
  void encode(const FoldArguments& arguments, const Encoded& encoded, const float* values, const Stretch& stretch,
              std::byte* message) const;
  bool rounds_stores(const FoldArguments& arguments, const Encoded& encoded) const;

  SlotEncoder encoder_;
  FoldFunction fold_;
  CompressedSumFunction sum_ = nullptr;  // For sums of float32 only.
  RoundedStores rounded_stores_;
  bool averages_;
};

}  // namespace tutti
