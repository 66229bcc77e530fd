// The interpreter's Machine on a CPU: worker 0 of 1, folding with the SIMD kernels that were picked for the launch.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "src/executor/cpu/fold.h"
#include "src/executor/interpreter.h"

namespace tutti {

// What a run needs beside its program; sized once, so that no step allocates.
class MachineMemory {
 public:
  // For programs whose widest step has `widest` operands on a side.
  void reserve(std::uint32_t widest) {
    if (widest < widest_) return;
    widest_ = widest + 1;
    pointers_.resize(std::size_t{2} * widest_);
    sources_.resize(widest_);
    targets_.resize(widest_);
    stage_.resize(std::size_t{widest_ + 1} * kStageBytes);
  }
  static constexpr std::size_t kStageBytes = 512;  // The data of a small message.

  std::byte** pointers() { return pointers_.data(); }
  const std::byte** sources() { return sources_.data(); }
  std::byte** targets() { return targets_.data(); }
  std::byte* stage() { return stage_.data(); }

 private:
  std::uint32_t widest_ = 0;
  std::vector<std::byte*> pointers_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  std::vector<std::byte> stage_;
};

class CpuMachine {
 public:
  CpuMachine(MachineMemory& memory, FoldFunction function, const FoldArguments& arguments)
      : function_(function),
        arguments_(arguments),
        sources_(memory.sources()),
        targets_(memory.targets()),
        stage_(memory.stage()) {
    arguments_.sources = sources_;
    arguments_.targets = targets_;
  }

  // Operands of peers are addresses in processes of their own (see foreign.h), by rank; null: they are mapped here.
  // Such plans only copy. `element_bytes`: of what fold() counts.
  void reach(const std::int32_t* processes, std::uint32_t element_bytes) {
    processes_ = processes;
    set_plain();
    element_bytes_ = element_bytes;
    failure_ = {};
  }
  // What the kernel refused since then, if it did.
  struct Failure {
    int error = 0;  // An errno; 0: nothing.
    Rank peer = 0;
  };
  const Failure& failure() const { return failure_; }

  // Whether the caller's output is written past the caches: it is large, and nothing of it was read.
  void stream_output(bool streams) {
    streams_output_ = streams;
    set_plain();
  }

  // Of this rank's input, for pre_mul_sum.
  void scale(double factor, std::int64_t integer_factor) {
    arguments_.scale = factor;
    arguments_.integer_scale = integer_factor;
    scales_ = true;
    set_plain();
  }

  std::byte* stage(std::uint32_t operand) { return stage_ + operand * MachineMemory::kStageBytes; }

  // Neither scales, nor streams, nor reaches into other processes.
  bool plain() const { return plain_; }

  void source(std::uint32_t index, std::byte* pointer) { sources_[index] = pointer; }
  void target(std::uint32_t index, std::byte* pointer) { targets_[index] = pointer; }
  void source(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    sources_[index] = pointer;
    if (operand.place == Place::input) own_ = index;
    if (processes_ != nullptr && operand.reserved != 0) foreign_source_ = operand.peer;
  }
  void target(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    targets_[index] = pointer;
    if (processes_ != nullptr && operand.reserved != 0) foreign_targets_.push_back({index, operand.peer});
    if (streams_output_ && operand.place == Place::output && index < 64)
      arguments_.streamed_targets |= std::uint64_t{1} << index;
  }

  void fold(std::uint32_t sources, std::uint32_t targets, std::uint64_t count, Fold kind) {
    arguments_.source_count = sources;
    arguments_.target_count = targets;
    arguments_.count = count;
    arguments_.complete = kind == Fold::complete;
    if (plain_) {
      function_(arguments_);
      return;
    }
    arguments_.own = own_;
    own_ = FoldArguments::kNone;
    if (foreign_source_ || !foreign_targets_.empty()) {
      copy_foreign();
    } else {
      function_(arguments_);
    }
    arguments_.streamed_targets = 0;
  }

 private:
  void copy_foreign();
  void set_plain() {
    plain_ = !scales_ && !streams_output_ && processes_ == nullptr;
    arguments_.own = own_ = FoldArguments::kNone;
  }

  FoldFunction function_;
  FoldArguments arguments_;
  const std::byte** sources_;
  std::byte** targets_;
  std::byte* stage_;
  bool plain_ = true;
  bool scales_ = false;
  bool streams_output_ = false;
  const std::int32_t* processes_ = nullptr;
  std::uint32_t element_bytes_ = 1;
  struct ForeignTarget {
    std::uint32_t index;
    Rank peer;
  };
  std::optional<Rank> foreign_source_;  // Of the next fold.
  std::vector<ForeignTarget> foreign_targets_;
  Failure failure_;
  std::uint32_t own_ = FoldArguments::kNone;  // Which source is this rank's input, to be scaled.
};

}  // namespace tutti
