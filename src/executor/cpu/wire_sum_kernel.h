// The sum of wire_sum.h, written for GNU vectors and compiled once for each instruction set. Of an Isa it asks what
// codec_kernel.h and fold_kernel.h do.
#pragma once

#include "src/executor/cpu/fold_lines.h"
#include "src/executor/cpu/wire_sum.h"
#include "src/wire/codec_kernel.h"

namespace tutti {

template <class Isa, class Form>
class WireSum {
 public:
  static void run(const WireSumArguments& arguments) {
    const WireSum sum(arguments);
    for (std::uint64_t i = 0; i < arguments.fold.count; i += kWireGroup) sum.deliver(sum.add_up(i), i);
    if (sum.streamed_ != 0) Isa::fence();
  }

 private:
  using Group = GroupKernel<Isa, Form>;
  using Values = typename Group::Values;
  using Real = typename Group::Real;
  static constexpr std::uint64_t kMemoryBytes = kWireGroup * sizeof(float);

  explicit WireSum(const WireSumArguments& arguments)
      : arguments_(arguments), fold_(arguments.fold), combines_(arguments.divides || arguments.fold.source_count > 1) {
    for (std::uint32_t t = 0; t < fold_.target_count && t < 64; ++t) {
      if (arguments.encoded.targets[t] != 0) continue;
      const std::byte* const target = fold_.targets[t];
      const std::uint64_t bit = std::uint64_t{1} << t;
      const auto address = reinterpret_cast<std::uintptr_t>(target);
      if ((fold_.streamed_targets & bit) != 0 &&
          address % Isa::kBytes == 0) {  // In parts it is slower than not at all.
        streamed_ |= bit;
      } else if (fold_.manners.fetches_targets && !is_source(target)) {
        fresh_ |= bit;
      }
    }
  }

  bool is_source(const std::byte* target) const {
    for (std::uint32_t s = 0; s < fold_.source_count; ++s) {
      if (fold_.sources[s] == target) return true;
    }
    return false;
  }

  TUTTI_KERNEL Values source(std::uint32_t s, std::uint64_t i) const {
    if (arguments_.encoded.sources[s] != 0) return Group::read(fold_.sources[s] + i / kWireGroup * kGroupBytes<Form>);
    const std::byte* const from = fold_.sources[s] + i * sizeof(float);
    if (s < 64 && (fold_.fetched_sources >> s & 1) != 0) {
      for (std::uint64_t line = 0; line < kMemoryBytes; line += kLineBytes)
        __builtin_prefetch(from + kFetchedAheadBytes + line);
    }
    return Group::load_values(reinterpret_cast<const float*>(from));
  }

  TUTTI_KERNEL Values add_up(std::uint64_t i) const {
    Values sum = source(0, i);
    for (std::uint32_t s = 1; s < fold_.source_count; ++s) {
      const Values next = source(s, i);
#pragma GCC unroll 8
      for (unsigned r = 0; r < Group::kRegisters; ++r) sum.at[r] += next.at[r];
    }
    if (arguments_.divides) {
      const auto divisor = static_cast<float>(fold_.ranks);
#pragma GCC unroll 8
      for (unsigned r = 0; r < Group::kRegisters; ++r) sum.at[r] /= divisor;
    }
    return sum;
  }

  TUTTI_KERNEL void deliver(const Values& sum, std::uint64_t i) const {
    std::byte room[kGroupBytes<Form>];
    std::byte* message = nullptr;
    for (std::uint32_t t = 0; t < fold_.target_count && !arguments_.forwards; ++t) {
      if (arguments_.encoded.targets[t] == 0) continue;
      std::byte* const slot = fold_.targets[t] + i / kWireGroup * kGroupBytes<Form>;
      if (message == nullptr) {
        Group::write(sum, slot, arguments_.range);
        message = slot;
      } else {
        std::memcpy(slot, message, kGroupBytes<Form>);
      }
    }
    if (!arguments_.kept) return store_all(sum, i);
    if (message == nullptr) {
      Group::write(sum, room, arguments_.range);
      message = room;
    }
    store_all(Group::read(message), i);
  }

  TUTTI_KERNEL void store_all(Values values, std::uint64_t i) const {
    for (std::uint32_t t = 0; t < fold_.target_count; ++t) {
      if (arguments_.encoded.targets[t] == 0) store(values, t, fold_.targets[t] + i * sizeof(float));
    }
  }

  TUTTI_KERNEL void store(const Values& values, std::uint32_t t, std::byte* to) const {
    const std::uint64_t bit = t < 64 ? std::uint64_t{1} << t : 0;
    if ((fresh_ & bit) != 0) {
      for (std::uint64_t line = 0; line < kMemoryBytes; line += kLineBytes) Isa::prepare(to + kAheadBytes + line);
    }
    const bool streams = (streamed_ & bit) != 0;
#pragma GCC unroll 8
    for (unsigned r = 0; r < Group::kRegisters; ++r) {
      const Real value = combines_ ? one_nan<typename Group::Word>(values.at[r]) : values.at[r];
      std::byte* const at = to + r * sizeof value;
      if (streams) Isa::stream(value, at);
      else std::memcpy(at, &value, sizeof value);
    }
  }

  const WireSumArguments& arguments_;
  const FoldArguments& fold_;
  const bool combines_;         // NaN may be any, and becomes the one.
  std::uint64_t streamed_ = 0;  // Bit t is the t-th target.
  std::uint64_t fresh_ = 0;     // Fetched ahead.
};

template <class Isa>
WireSumFunction find_wire_sum_in(WireFormat format) {
  return visit_form(format, []<class Form>(Type<Form>) -> WireSumFunction { return WireSum<Isa, Form>::run; });
}

}  // namespace tutti
