// Error feedback before a call. The input plus its residual, rounded to the compression format, replaces the input; the
// remainder becomes the residual. Bit-identical to SlotEncoder::apply_residual(). Host and device compile this source.
#pragma once

#include "src/executor/thread_block/compressed_share.h"
#include "src/executor/thread_block/compression_rounding.h"

namespace tutti {

// Plain data of fixed width: a kernel argument. Addresses are those of the device.
struct ResidualTask {
  const std::byte* input = nullptr;
  std::byte* held = nullptr;  // Same size as the input; may be the input.
  float* residual = nullptr;  // One element per input element.
  const KernelRounding* rounding = nullptr;
  std::uint64_t count = 0;                                  // Elements per block.
  std::uint64_t blocks = 0;                                 // Each block is encoded in groups of its own.
  CompressionFormat compression = CompressionFormat::none;  // none: nothing to do.
  DataType type = DataType::float32;

  TUTTI_HOST_DEVICE std::uint64_t groups_of_block() const {
    return (count + kCompressionGroup - 1) / kCompressionGroup;
  }
};

// Threads: the threads that share a group; GroupThreads for this processor.
template <class Form, class Threads = GroupThreads>
class ResidualApplication {
 public:
  TUTTI_HOST_DEVICE ResidualApplication(const ResidualTask& task, ThreadGroup threads)
      : task_(task),
        threads_(threads.index, threads.count),
        range_(range_of(task.type)),
        dithers_(task.rounding->dithers != 0),
        key_(task.rounding->runs == nullptr ? task.rounding->input_key
                                            : key_of_run(task.rounding->input_key, *task.rounding->runs)) {}

  TUTTI_HOST_DEVICE void run() const {
    const std::uint64_t groups = task_.groups_of_block();
    TUTTI_ROLLED
    for (std::uint64_t at = threads_.first(); at < groups * task_.blocks; at += threads_.step()) {
      const std::uint64_t block = at / groups;
      TUTTI_ROLLED
      for (std::uint32_t i = threads_.index() * kShare; i < kCompressionGroup; i += Threads::kThreads * kShare)
        apply_residual(block * task_.count, SharePosition::of(at - block * groups, i, task_.count, kShare));
    }
  }

 private:
  using Share = CompressedShare<Form, Threads>;
  static constexpr std::uint32_t kShare = Share::kCount;

  // `first`: first element of the block.
  TUTTI_HOST_DEVICE void apply_residual(std::uint64_t first, const SharePosition& spot) const {
    const std::uint64_t element_bytes = size_of(task_.type);
    auto* const residual = reinterpret_cast<std::byte*>(task_.residual + first);
    Share share = {}, rests = {};
    rests.template load<std::uint32_t>(residual, spot);
    if (task_.type == DataType::float32) {
      share.template load<std::uint32_t>(task_.input + first * element_bytes, spot);
    } else {
      share.template load<std::uint16_t>(task_.input + first * element_bytes, spot);
    }
    float values[kShare], decoded[kShare];
    for (std::uint32_t i = 0; i < kShare; ++i) {
      const float rest = value_of(DataType::float32, rests.words[i]);
      if (!is_finite(rest)) rests.words[i] = 0;
      const float sum = value_of(task_.type, share.words[i]) + (is_finite(rest) ? rest : 0);
      values[i] = i < spot.count ? sum : 0;
    }
    if (dithers_) {
      share.encode(values, range_, threads_, Dither{key_, first + spot.begin()});
    } else {
      share.encode(values, range_, threads_);
    }
    share.decode(decoded);
    Share::template store<std::uint32_t>(residual, spot, [&](std::uint32_t i) {
      const float rest = values[i] - decoded[i];
      return is_finite(rest) ? __builtin_bit_cast(std::uint32_t, rest) : rests.words[i];
    });
    store(task_.held + first * element_bytes, spot, decoded);
  }

  TUTTI_HOST_DEVICE void store(std::byte* to, const SharePosition& spot, const float* values) const {
    const auto bits = [&](std::uint32_t i) { return bits_of(task_.type, values[i]); };
    if (task_.type == DataType::float32) return Share::template store<std::uint32_t>(to, spot, bits);
    Share::template store<std::uint16_t>(to, spot,
                                         [&](std::uint32_t i) { return static_cast<std::uint16_t>(bits(i)); });
  }

  const ResidualTask& task_;
  const Threads threads_;
  const GroupRange range_;
  const bool dithers_;
  const std::uint64_t key_;
};

TUTTI_HOST_DEVICE inline void apply_residual(const ResidualTask& task, ThreadGroup threads) {
  visit_form(task.compression, [&]<class Form>(Type<Form>) { ResidualApplication<Form>(task, threads).run(); });
}

}  // namespace tutti
