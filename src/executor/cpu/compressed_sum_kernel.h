// The sum of compressed_sum.h in GNU vectors, compiled once per instruction set. Requires of an Isa what codec_kernel.h
// and fold_kernel.h require.
#pragma once

#include "src/compression/codec_kernel.h"
#include "src/executor/cpu/compressed_sum.h"
#include "src/executor/cpu/fold_lines.h"

namespace tutti {

template <class Isa, class Form>
class CompressedSum {
 public:
  static void run(const CompressedSumArguments& arguments) {
    const CompressedSum sum(arguments);
    Real carried = {};
    for (std::uint64_t i = 0; i < arguments.fold.count; i += kCompressionGroup) sum.deliver(sum.add_up(i), i, carried);
    if (sum.streamed_ != 0) Isa::fence();
  }

 private:
  using Group = GroupKernel<Isa, Form>;
  using Values = typename Group::Values;
  using Real = typename Group::Real;
  static constexpr std::uint64_t kMemoryBytes = kCompressionGroup * sizeof(float);

  explicit CompressedSum(const CompressedSumArguments& arguments)
      : arguments_(arguments), fold_(arguments.fold), combines_(arguments.divides || arguments.fold.source_count > 1) {
    for (std::uint32_t t = 0; t < fold_.target_count && t < 64; ++t) {
      if (arguments.encoded.targets[t] != 0) continue;
      const std::byte* const target = fold_.targets[t];
      const std::uint64_t bit = std::uint64_t{1} << t;
      if ((fold_.streamed_targets & bit) != 0 && can_stream(t)) {
        streamed_ |= bit;
      } else if (fold_.cache_policy.fetches_targets && !is_source(target)) {
        fresh_ |= bit;
      }
    }
  }

  // True if target `t` can be written with non-temporal stores of whole registers; partial ones are slower than none.
  // malloc() does not align to lines. One such target can be streamed by recombining registers at line boundaries.
  bool can_stream(std::uint32_t t) {
    const std::uint64_t behind = reinterpret_cast<std::uintptr_t>(fold_.targets[t]) % Isa::kBytes;
    if (behind == 0) return true;
    if (Isa::kBytes != kCacheLineBytes || behind % sizeof(float) != 0 || carries_ != FoldArguments::kNone) return false;
    carries_ = t;
    behind_ = static_cast<std::uint32_t>(behind / sizeof(float));
    return true;
  }

  bool is_source(const std::byte* target) const {
    for (std::uint32_t s = 0; s < fold_.source_count; ++s) {
      if (fold_.sources[s] == target) return true;
    }
    return false;
  }

  TUTTI_KERNEL Values source(std::uint32_t s, std::uint64_t i) const {
    if (arguments_.encoded.sources[s] != 0)
      return Group::read(fold_.sources[s] + i / kCompressionGroup * kGroupBytes<Form>);
    const std::byte* const from = fold_.sources[s] + i * sizeof(float);
    if (s < 64 && (fold_.fetched_sources >> s & 1) != 0) {
      for (std::uint64_t line = 0; line < kMemoryBytes; line += kCacheLineBytes)
        __builtin_prefetch(from + kFetchedAheadBytes + line);
    }
    return Group::load_values(reinterpret_cast<const float*>(from));
  }

  TUTTI_KERNEL Values add_up(std::uint64_t i) const {
    Values sum = source(0, i);
    for (std::uint32_t s = 1; s < fold_.source_count; ++s) {
      const Values next = source(s, i);
#pragma GCC unroll 16
      for (unsigned r = 0; r < Group::kRegisters; ++r) sum.at[r] += next.at[r];
    }
    if (arguments_.divides) {
      const auto divisor = static_cast<float>(fold_.ranks);
#pragma GCC unroll 16
      for (unsigned r = 0; r < Group::kRegisters; ++r) sum.at[r] /= divisor;
    }
    return sum;
  }

  // Stores the sum to all targets. `carried` is the last register of the preceding group, of which a part is not yet
  // written.
  TUTTI_KERNEL void deliver(const Values& sum, std::uint64_t i, Real& carried) const {
    std::byte room[kGroupBytes<Form>];
    std::byte* message = nullptr;
    for (std::uint32_t t = 0; t < fold_.target_count && !arguments_.forwards; ++t) {
      if (arguments_.encoded.targets[t] == 0) continue;
      std::byte* const slot = fold_.targets[t] + i / kCompressionGroup * kGroupBytes<Form>;
      if (message == nullptr) {
        Group::write(sum, slot, arguments_.range);
        message = slot;
      } else {
        std::memcpy(slot, message, kGroupBytes<Form>);
      }
    }
    if (!arguments_.kept) return store_all(sum, i, carried);
    if (message == nullptr) {
      Group::write(sum, room, arguments_.range);
      message = room;
    }
    store_all(Group::read(message), i, carried);
  }

  TUTTI_KERNEL void store_all(Values values, std::uint64_t i, Real& carried) const {
    if (combines_) {
#pragma GCC unroll 16
      for (unsigned r = 0; r < Group::kRegisters; ++r) values.at[r] = one_nan<typename Group::Word>(values.at[r]);
    }
    for (std::uint32_t t = 0; t < fold_.target_count; ++t) {
      if (arguments_.encoded.targets[t] != 0) continue;
      if (Isa::kBytes == kCacheLineBytes && t == carries_) carry(values, i, carried);
      else store(values, t, fold_.targets[t] + i * sizeof(float));
    }
  }

  // Streams whole lines, each combined from the end of one register and the beginning of the next. The partial first
  // and last lines are written normally, so that adjacent memory is not touched.
  TUTTI_KERNEL void carry(const Values& values, std::uint64_t i, Real& carried) const {
    using Lanes = Vector<std::int32_t, Group::kLanes>;
    Lanes lanes;
    for (int k = 0; k < static_cast<int>(Group::kLanes); ++k) lanes[k] = k;
    lanes += static_cast<std::int32_t>(Group::kLanes - behind_);
    std::byte* const to = fold_.targets[carries_] + i * sizeof(float);
    std::byte* const line = to - behind_ * sizeof(float);
#pragma GCC unroll 16
    for (unsigned r = 0; r < Group::kRegisters; ++r) {
      const Real before = r == 0 ? carried : values.at[r - 1];
      if (r == 0 && i == 0) std::memcpy(to, &values.at[0], sizeof(Real));
      else Isa::stream(Real(__builtin_shuffle(before, values.at[r], lanes)), line + r * sizeof(Real));
    }
    carried = values.at[Group::kRegisters - 1];
    if (i + kCompressionGroup >= fold_.count)
      std::memcpy(to + (Group::kRegisters - 1) * sizeof(Real), &carried, sizeof(Real));
  }

  TUTTI_KERNEL void store(const Values& values, std::uint32_t t, std::byte* to) const {
    const std::uint64_t bit = t < 64 ? std::uint64_t{1} << t : 0;
    if ((fresh_ & bit) != 0) {
      for (std::uint64_t line = 0; line < kMemoryBytes; line += kCacheLineBytes) Isa::prepare(to + kAheadBytes + line);
    }
    const bool streams = (streamed_ & bit) != 0;
#pragma GCC unroll 16
    for (unsigned r = 0; r < Group::kRegisters; ++r) {
      const Real value = values.at[r];
      std::byte* const at = to + r * sizeof value;
      if (streams) Isa::stream(value, at);
      else std::memcpy(at, &value, sizeof value);
    }
  }

  const CompressedSumArguments& arguments_;
  const FoldArguments& fold_;
  const bool combines_;                           // NaNs may have any payload and are made canonical.
  std::uint64_t streamed_ = 0;                    // Bit mask of targets.
  std::uint64_t fresh_ = 0;                       // Bit mask of prefetched targets.
  std::uint32_t carries_ = FoldArguments::kNone;  // Target that begins behind_ floats after a line boundary.
  std::uint32_t behind_ = 0;
};

template <class Isa>
CompressedSumFunction find_compressed_sum_in(CompressionFormat format) {
  return visit_form(format,
                    []<class Form>(Type<Form>) -> CompressedSumFunction { return CompressedSum<Isa, Form>::run; });
}

}  // namespace tutti
