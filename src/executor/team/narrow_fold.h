// The fold of a team where messages carry numbers in a wire format: they are decoded as they are read, folded in
// float32, and encoded once as they are sent. What is only passed on goes as it came. Each element is read and written
// once, in registers in between. Host and device compile this source; the results have the bits of the CPU's folds.
#pragma once

#include "src/executor/team/narrow_share.h"
#include "src/executor/team/scalar.h"
#include "src/plan/step.h"

namespace tutti {

enum class NarrowOperand : std::uint8_t { memory, own_input, message };

// What the operands of a fold are. Shared by the team.
struct NarrowMarks {
  const NarrowOperand* sources = nullptr;
  const NarrowOperand* targets = nullptr;
};

// Workers: who has a group together, as GroupCrew says it of this processor.
template <class Form, class Workers = GroupCrew>
class NarrowFold {
 public:
  TUTTI_HOST_DEVICE NarrowFold(const FoldTask& task, Keeps keeps, const FoldOperands& operands,
                               const NarrowMarks& marks, Crew crew)
      : operands_(operands),
        marks_(marks),
        crew_(crew.worker, crew.workers),
        range_(range_of(task.type)),
        reduction_(task.reduction),
        divisor_(task.reduction == Reduction::avg && operands.complete ? task.ranks : 1),
        factor_(static_cast<float>(task.scale)),
        passes_(operands.source_count == 1 && is_message(marks.sources[0])),
        keeps_(keeps == Keeps::sums ? operands.complete : keeps == Keeps::copies && !is_message(marks.sources[0])),
        sends_(false) {
    TUTTI_ROLLED
    for (std::uint32_t k = 0; k < operands.target_count; ++k) sends_ = sends_ || is_message(marks.targets[k]);
  }

  TUTTI_HOST_DEVICE void run() const {
    const std::uint64_t groups = (operands_.count + kWireGroup - 1) / kWireGroup;
    TUTTI_ROLLED
    for (std::uint64_t group = crew_.first(); group < groups; group += kGroups * std::uint64_t{crew_.step()}) {
      TUTTI_ROLLED
      for (std::uint32_t at = crew_.place() * kShare; at < kWireGroup; at += Workers::kWorkers * kShare) {
        Spot spots[kGroups];
        for (std::uint32_t n = 0; n < kGroups; ++n)
          spots[n] = Spot::of(group + std::uint64_t{n} * crew_.step(), at, operands_.count, kShare);
        fold(spots);
      }
    }
  }

 private:
  static constexpr std::uint32_t kGroups = Workers::template kGroups<Form::kBlock>;
  using Share = NarrowShare<Form, Workers>;
  static constexpr std::uint32_t kShare = Share::kCount;
  using Shares = Share[kGroups];
  using Values = float[kGroups][kShare];
  using Spots = Spot[kGroups];

  // All is read before anything is written, which may be in place.
  TUTTI_HOST_DEVICE void fold(const Spots& spots) const {
    Shares shares = {};
    Values values;
    sum(spots, shares, values);
    if (!passes_ && (sends_ || keeps_)) encode(spots, shares, values);
    crew_.join();
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

  // Each source while the one before is being added. Leaves in `shares` what is passed on.
  TUTTI_HOST_DEVICE void sum(const Spots& spots, Shares& shares, Values& values) const {
    Shares ahead = {};
    load(0, spots, shares);
    if (operands_.source_count > 1) load(1, spots, ahead);
    decode(0, shares, values);
    if (passes_) return;
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
    } else if (range_.type == DataType::float32) {
      for (std::uint32_t n = 0; n < kGroups; ++n) shares[n].template load<std::uint32_t>(from, spots[n]);
    } else {
      for (std::uint32_t n = 0; n < kGroups; ++n) shares[n].template load<std::uint16_t>(from, spots[n]);
    }
  }

  TUTTI_HOST_DEVICE void decode(std::uint32_t source, const Shares& shares, Values& values) const {
    if (is_message(marks_.sources[source])) {
      for (std::uint32_t n = 0; n < kGroups; ++n) shares[n].decode(values[n]);
    } else if (range_.type == DataType::float32) {
      each(values, [&](std::uint32_t n, std::uint32_t i) { return __builtin_bit_cast(float, shares[n].words[i]); });
    } else if (range_.type == DataType::float16) {
      each(values, [&](std::uint32_t n, std::uint32_t i) { return widened<Float16>(shares[n].words[i]); });
    } else {
      each(values, [&](std::uint32_t n, std::uint32_t i) { return widened<BFloat16>(shares[n].words[i]); });
    }
    if (scales(source)) each(values, [&](std::uint32_t n, std::uint32_t i) { return values[n][i] * factor_; });
  }

  TUTTI_HOST_DEVICE bool scales(std::uint32_t source) const {
    return reduction_ == Reduction::pre_mul_sum && marks_.sources[source] == NarrowOperand::own_input;
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

  // An average over 2^k ranks is exactly as rounded as the division.
  TUTTI_HOST_DEVICE void finish(Values& values) const {
    if ((divisor_ & (divisor_ - 1)) == 0) {
      const float share = 1 / static_cast<float>(divisor_);
      return each(values,
                  [&](std::uint32_t n, std::uint32_t i) { return one_nan<std::uint32_t>(values[n][i] * share); });
    }
    const auto divisor = static_cast<float>(divisor_);
    each(values, [&](std::uint32_t n, std::uint32_t i) { return one_nan<std::uint32_t>(values[n][i] / divisor); });
  }

  TUTTI_HOST_DEVICE void encode(const Spots& spots, Shares& shares, Values& values) const {
    for (std::uint32_t n = 0; n < kGroups; ++n) {
      for (std::uint32_t i = 0; i < kShare; ++i) values[n][i] = i < spots[n].count ? values[n][i] : 0;
      shares[n].encode(values[n], range_, crew_);
      if (keeps_) shares[n].decode(values[n]);
    }
  }

  TUTTI_HOST_DEVICE void store(std::byte* to, const Spots& spots, const Values& values) const {
    for (std::uint32_t n = 0; n < kGroups; ++n) {
      if (range_.type == DataType::float32) {
        Share::template store<std::uint32_t>(
            to, spots[n], [&](std::uint32_t i) { return __builtin_bit_cast(std::uint32_t, values[n][i]); });
      } else if (range_.type == DataType::float16) {
        Share::template store<std::uint16_t>(
            to, spots[n], [&](std::uint32_t i) { return TeamScalar::narrowed<Float16>(values[n][i]); });
      } else {
        Share::template store<std::uint16_t>(
            to, spots[n], [&](std::uint32_t i) { return TeamScalar::narrowed<BFloat16>(values[n][i]); });
      }
    }
  }

  TUTTI_HOST_DEVICE static bool is_message(NarrowOperand operand) { return operand == NarrowOperand::message; }

  template <typename Make>
  TUTTI_NUMERIC static void each(Values& values, Make&& make) {
    for (std::uint32_t n = 0; n < kGroups; ++n) {
      for (std::uint32_t i = 0; i < kShare; ++i) values[n][i] = make(n, i);
    }
  }
  template <typename T>
  TUTTI_NUMERIC static float widened(std::uint32_t bits) {
    return one_nan<std::uint32_t>(TeamScalar::widened<T>(static_cast<std::uint16_t>(bits)));
  }
  template <Reduction kReduction>
  TUTTI_NUMERIC static float ordered(float a, float b) {
    using Order = Orders<float, kReduction, Scalar>;
    const auto least = Order::combine(Order::read(__builtin_bit_cast(std::uint32_t, a)),
                                      Order::read(__builtin_bit_cast(std::uint32_t, b)));
    return __builtin_bit_cast(float, Order::write(least));
  }

  const FoldOperands operands_;
  const NarrowMarks marks_;
  const Workers crew_;
  const WireRange range_;
  const Reduction reduction_;
  const std::uint32_t divisor_;  // 1: nothing is divided.
  const float factor_;
  const bool passes_, keeps_;  // A message as it came; what is stored as it is sent.
  bool sends_;
};

// Not inlined, as folds are not.
template <class Form>
TUTTI_HOST_DEVICE [[gnu::noinline]] void narrow_fold_as(const FoldTask& task, Keeps keeps, const FoldOperands& operands,
                                                        const NarrowMarks& marks, Crew crew) {
  NarrowFold<Form>(task, keeps, operands, marks, crew).run();
}

// As team_fold(), where task.wire is a format; `keeps`: see src/plan/step.h. What operands.scaled says is not looked
// at. Messages begin at the first element of a group. The type is one that travels so.
TUTTI_HOST_DEVICE inline void narrow_fold(const FoldTask& task, Keeps keeps, const FoldOperands& operands,
                                          const NarrowMarks& marks, Crew crew) {
  visit_form(task.wire, [&]<class Form>(Type<Form>) { narrow_fold_as<Form>(task, keeps, operands, marks, crew); });
}

}  // namespace tutti
