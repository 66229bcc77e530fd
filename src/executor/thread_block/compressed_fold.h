// The fold of a thread block with compressed messages: decode when read, fold in float32, encode once when sent. A
// message that is only forwarded is copied unchanged. Each element is read and written once and stays in registers in
// between. Host and device compile this source. Results are bit-identical to the CPU's folds.
#pragma once

#include "src/executor/thread_block/compressed_share.h"
#include "src/executor/thread_block/compression_rounding.h"
#include "src/executor/thread_block/scalar.h"

namespace tutti {

// Whether rounding options are compiled in. Separate code, so that rarely used options cost the common case no
// registers.
enum class RoundingOptions : std::uint8_t { to_nearest, as_requested };

// Threads: the threads that share a group; GroupThreads for this processor.
template <class Form, class Threads = GroupThreads, RoundingOptions kRounds = RoundingOptions::to_nearest>
class CompressedThreadBlockFold {
 public:
  // `rounding` is ignored for RoundingOptions::to_nearest.
  TUTTI_HOST_DEVICE CompressedThreadBlockFold(const FoldTask& task, RoundedStores rounded_stores,
                                              const FoldOperands& operands, const CompressedMarks& marks,
                                              ThreadGroup threads, const FoldRounding& rounding = {})
      : operands_(operands),
        marks_(marks),
        threads_(threads.index, threads.count),
        type_(task.type),
        reduction_(task.reduction),
        divisor_(task.reduction == Reduction::avg && operands.complete ? task.ranks : 1),
        factor_(static_cast<float>(task.scale)),
        forwards_(operands.source_count == 1 && is_message(marks.sources[0])),
        rounds_stores_(rounded_stores == RoundedStores::sums
                           ? operands.complete
                           : rounded_stores == RoundedStores::copies && !is_message(marks.sources[0])),
        rounding_(rounding),
        sends_(false) {
    TUTTI_ROLLED
    for (std::uint32_t k = 0; k < operands.target_count; ++k) sends_ = sends_ || is_message(marks.targets[k]);
  }

  TUTTI_HOST_DEVICE void run() const {
    const std::uint64_t groups = (operands_.count + kCompressionGroup - 1) / kCompressionGroup;
    TUTTI_ROLLED
    for (std::uint64_t group = threads_.first(); group < groups; group += kGroups * std::uint64_t{threads_.step()}) {
      bool decoded = false;
      if constexpr (kRounds == RoundingOptions::as_requested) decoded = was_decoded(group);
      TUTTI_ROLLED
      for (std::uint32_t at = threads_.index() * kShare; at < kCompressionGroup; at += Threads::kThreads * kShare) {
        SharePosition spots[kGroups];
        for (std::uint32_t n = 0; n < kGroups; ++n)
          spots[n] = SharePosition::of(group + std::uint64_t{n} * threads_.step(), at, operands_.count, kShare);
        fold(spots, decoded);
      }
    }
  }

 private:
  static constexpr std::uint32_t kGroups =
      kRounds == RoundingOptions::to_nearest ? Threads::template kGroups<Form::kScaleBlock> : 1;
  using Share = CompressedShare<Form, Threads>;
  static constexpr std::uint32_t kShare = Share::kCount;
  using Shares = Share[kGroups];
  using Values = float[kGroups][kShare];
  using Spots = SharePosition[kGroups];

  // All reads precede all writes, since targets may be in place. `decoded` is the result of was_decoded().
  TUTTI_HOST_DEVICE void fold(const Spots& spots, bool decoded) const {
    Shares shares = {};
    Values values;
    sum(spots, shares, values);
    if (!forwards_ && (sends_ || rounds_stores_)) encode(spots, shares, values, decoded);
    threads_.join();
    TUTTI_ROLLED
    for (std::uint32_t k = 0; k < operands_.target_count; ++k) {
      std::byte* to = operands_.targets[k];
      if (is_message(marks_.targets[k])) {
        for (std::uint32_t n = 0; n < kGroups; ++n) shares[n].send(to, spots[n]);
      } else {
        store(to, spots, values);
      }
    }
  }

  // Sums the sources into `values`, loading each source while the preceding one is added. Leaves a forwarded message in
  // `shares`.
  TUTTI_HOST_DEVICE void sum(const Spots& spots, Shares& shares, Values& values) const {
    Shares ahead = {};
    load(0, spots, shares);
    if (operands_.source_count > 1) load(1, spots, ahead);
    decode(0, shares, values);
    if (forwards_) return;
    TUTTI_ROLLED
    for (std::uint32_t k = 1; k < operands_.source_count; ++k) {
      Values next;
      decode(k, ahead, next);
      if (k + 1 < operands_.source_count) load(k + 1, spots, ahead);
      combine(values, next);
    }
    if (operands_.source_count > 1 || divisor_ > 1 || scales(0)) finish(values);
  }

  TUTTI_HOST_DEVICE void load(std::uint32_t source, const Spots& spots, Shares& shares) const {
    const std::byte* from = operands_.sources[source];
    if (is_message(marks_.sources[source])) {
      for (std::uint32_t n = 0; n < kGroups; ++n) shares[n].receive(from, spots[n]);
    } else if (type_ == DataType::float32) {
      for (std::uint32_t n = 0; n < kGroups; ++n) shares[n].template load<std::uint32_t>(from, spots[n]);
    } else {
      for (std::uint32_t n = 0; n < kGroups; ++n) shares[n].template load<std::uint16_t>(from, spots[n]);
    }
  }

  TUTTI_HOST_DEVICE void decode(std::uint32_t source, const Shares& shares, Values& values) const {
    if (is_message(marks_.sources[source])) {
      for (std::uint32_t n = 0; n < kGroups; ++n) shares[n].decode(values[n]);
    } else if (type_ == DataType::float32) {
      each(values, [&](std::uint32_t n, std::uint32_t i) { return __builtin_bit_cast(float, shares[n].words[i]); });
    } else if (type_ == DataType::float16) {
      each(values, [&](std::uint32_t n, std::uint32_t i) { return widened<Float16>(shares[n].words[i]); });
    } else {
      each(values, [&](std::uint32_t n, std::uint32_t i) { return widened<BFloat16>(shares[n].words[i]); });
    }
    if (scales(source)) each(values, [&](std::uint32_t n, std::uint32_t i) { return values[n][i] * factor_; });
  }

  TUTTI_HOST_DEVICE bool scales(std::uint32_t source) const {
    return reduction_ == Reduction::pre_mul_sum && marks_.sources[source] == CompressedOperand::own_input;
  }

  TUTTI_HOST_DEVICE void combine(Values& values, const Values& next) const {
    switch (reduction_) {
      case Reduction::prod:
        return each(values, [&](std::uint32_t n, std::uint32_t i) { return values[n][i] * next[n][i]; });
      case Reduction::min:
        return each(values, [&](std::uint32_t n, std::uint32_t i) {
          return ordered<Reduction::min>(values[n][i], next[n][i]);
        });
      case Reduction::max:
        return each(values, [&](std::uint32_t n, std::uint32_t i) {
          return ordered<Reduction::max>(values[n][i], next[n][i]);
        });
      default: return each(values, [&](std::uint32_t n, std::uint32_t i) { return values[n][i] + next[n][i]; });
    }
  }

  // For averages over 2^k ranks, multiplying by the inverse is as exact as division.
  TUTTI_HOST_DEVICE void finish(Values& values) const {
    if ((divisor_ & (divisor_ - 1)) == 0) {
      const float share = 1 / static_cast<float>(divisor_);
      return each(values,
                  [&](std::uint32_t n, std::uint32_t i) { return one_nan<std::uint32_t>(values[n][i] * share); });
    }
    const auto divisor = static_cast<float>(divisor_);
    each(values, [&](std::uint32_t n, std::uint32_t i) { return one_nan<std::uint32_t>(values[n][i] / divisor); });
  }

  TUTTI_HOST_DEVICE void encode(const Spots& spots, Shares& shares, Values& values, bool decoded) const {
    for (std::uint32_t n = 0; n < kGroups; ++n) {
      for (std::uint32_t i = 0; i < kShare; ++i) values[n][i] = i < spots[n].count ? values[n][i] : 0;
      if constexpr (kRounds == RoundingOptions::to_nearest) {
        shares[n].encode(values[n], range_of(type_), threads_);
      } else {
        encode_as_requested(spots[n], shares[n], values[n], decoded);
      }
      if (rounds_stores_) shares[n].decode(values[n]);
    }
  }

  TUTTI_HOST_DEVICE void encode_as_requested(const SharePosition& spot, Share& share, const float* values,
                                             bool decoded) const {
    const Dither here = {rounding_.dither.seed, rounding_.dither.first + spot.begin()};
    if (rounding_.dithers && !decoded) {
      share.encode(values, range_of(type_), threads_, here);
    } else {
      share.encode(values, range_of(type_), threads_);
    }
    if (rounding_.quantization_errors != nullptr) add_quantization_errors(spot, share, values);
  }

  // Adds the quantization errors. The error of an average counts once per term.
  TUTTI_HOST_DEVICE void add_quantization_errors(const SharePosition& spot, const Share& share,
                                                 const float* values) const {
    float* const quantization_errors = rounding_.quantization_errors + spot.begin();
    const auto terms = static_cast<float>(divisor_);
    float decoded[kShare];
    share.decode(decoded);
    for (std::uint32_t i = 0; i < kShare; ++i) {
      if (i >= spot.count) continue;
      const float loss = terms * (values[i] - (is_held() ? held(decoded[i]) : decoded[i]));
      quantization_errors[i] += is_finite(loss) ? loss : 0;
    }
  }

  // True if the group was decoded from a message before: rounding to nearest reproduces it. Such a group must not be
  // rounded stochastically again. Called by all threads that share the group; applies to a single source in memory.
  TUTTI_HOST_DEVICE bool was_decoded(std::uint64_t group) const {
    if (!rounding_.dithers || !is_held() || forwards_ || !(sends_ || rounds_stores_)) return false;
    bool same = true;
    TUTTI_ROLLED
    for (std::uint32_t at = threads_.index() * kShare; at < kCompressionGroup; at += Threads::kThreads * kShare) {
      const SharePosition spots[1] = {SharePosition::of(group, at, operands_.count, kShare)};
      Share shares[1] = {};
      float values[1][kShare], decoded[kShare];
      sum(spots, shares, values);
      for (std::uint32_t i = 0; i < kShare; ++i) values[0][i] = i < spots[0].count ? values[0][i] : 0;
      shares[0].encode(values[0], range_of(type_), threads_);
      shares[0].decode(decoded);
      for (std::uint32_t i = 0; i < kShare; ++i)
        same = same && (i >= spots[0].count || __builtin_bit_cast(std::uint32_t, held(decoded[i])) ==
                                                   __builtin_bit_cast(std::uint32_t, values[0][i]));
    }
    return threads_.all(same);
  }

  TUTTI_HOST_DEVICE bool is_held() const { return operands_.source_count == 1; }
  // Rounds to the tensor's type.
  TUTTI_HOST_DEVICE float held(float value) const { return value_of(type_, bits_of(type_, value)); }

  TUTTI_HOST_DEVICE void store(std::byte* to, const Spots& spots, const Values& values) const {
    for (std::uint32_t n = 0; n < kGroups; ++n) {
      if (type_ == DataType::float32) {
        Share::template store<std::uint32_t>(
            to, spots[n], [&](std::uint32_t i) { return __builtin_bit_cast(std::uint32_t, values[n][i]); });
      } else if (type_ == DataType::float16) {
        Share::template store<std::uint16_t>(
            to, spots[n], [&](std::uint32_t i) { return KernelScalar::narrowed<Float16>(values[n][i]); });
      } else {
        Share::template store<std::uint16_t>(
            to, spots[n], [&](std::uint32_t i) { return KernelScalar::narrowed<BFloat16>(values[n][i]); });
      }
    }
  }

  TUTTI_HOST_DEVICE static bool is_message(CompressedOperand operand) { return operand == CompressedOperand::message; }

  template <typename Make>
  TUTTI_NUMERIC static void each(Values& values, Make&& make) {
    for (std::uint32_t n = 0; n < kGroups; ++n) {
      for (std::uint32_t i = 0; i < kShare; ++i) values[n][i] = make(n, i);
    }
  }
  template <typename T>
  TUTTI_NUMERIC static float widened(std::uint32_t bits) {
    return one_nan<std::uint32_t>(KernelScalar::widened<T>(static_cast<std::uint16_t>(bits)));
  }
  template <Reduction kReduction>
  TUTTI_NUMERIC static float ordered(float a, float b) {
    using Order = Orders<float, kReduction, Scalar>;
    const auto combined = Order::combine(Order::read(__builtin_bit_cast(std::uint32_t, a)),
                                         Order::read(__builtin_bit_cast(std::uint32_t, b)));
    return __builtin_bit_cast(float, Order::write(combined));
  }

  const FoldOperands operands_;
  const CompressedMarks marks_;
  const Threads threads_;
  const DataType type_;
  const Reduction reduction_;
  const std::uint32_t divisor_;  // 1: no division.
  const float factor_;
  const bool forwards_, rounds_stores_;  // Forwards a message unchanged; stores values as sent.
  const FoldRounding rounding_;
  bool sends_;
};

// Not inlined, like the other folds.
template <class Form>
TUTTI_HOST_DEVICE [[gnu::noinline]] void compressed_thread_block_fold_as(const FoldTask& task,
                                                                         RoundedStores rounded_stores,
                                                                         const FoldOperands& operands,
                                                                         const CompressedMarks& marks,
                                                                         ThreadGroup threads) {
  CompressedThreadBlockFold<Form>(task, rounded_stores, operands, marks, threads).run();
}

template <class Form>
TUTTI_HOST_DEVICE [[gnu::noinline]] void compressed_thread_block_fold_as(
    const FoldTask& task, RoundedStores rounded_stores, const FoldOperands& operands, const CompressedMarks& marks,
    ThreadGroup threads, const FoldRounding& rounding) {
  CompressedThreadBlockFold<Form, GroupThreads, RoundingOptions::as_requested>(task, rounded_stores, operands, marks,
                                                                               threads, rounding)
      .run();
}

// Like thread_block_fold(), for compression formats (task.compression). `rounded_stores`: see src/plan/step.h. Ignores
// operands.scaled. Messages must begin at the first element of a group. The type must be compressible.
TUTTI_HOST_DEVICE inline void compressed_thread_block_fold(const FoldTask& task, RoundedStores rounded_stores,
                                                           const FoldOperands& operands, const CompressedMarks& marks,
                                                           ThreadGroup threads) {
  visit_form(task.compression, [&]<class Form>(Type<Form>) {
    compressed_thread_block_fold_as<Form>(task, rounded_stores, operands, marks, threads);
  });
}

// Same with stochastic rounding or error feedback. Not inlined, because few calls use it.
TUTTI_HOST_DEVICE [[gnu::noinline]] inline void compressed_thread_block_fold(
    const FoldTask& task, RoundedStores rounded_stores, const FoldOperands& operands, const CompressedMarks& marks,
    ThreadGroup threads, const KernelRounding& requested) {
  const FoldRounding rounding = rounding_of(requested, operands, marks, task.type);
  visit_form(task.compression, [&]<class Form>(Type<Form>) {
    compressed_thread_block_fold_as<Form>(task, rounded_stores, operands, marks, threads, rounding);
  });
}

}  // namespace tutti
