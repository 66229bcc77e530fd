// The interpreter's Backend for a CPU: thread 0 of 1, with the SIMD fold kernels selected at launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "src/base/factor.h"
#include "src/executor/cpu/compressed_fold.h"
#include "src/executor/interpreter.h"

namespace tutti {

// Buffers of a run, allocated once, so that steps do not allocate.
class BackendMemory {
 public:
  // Allocates for programs with at most `widest` operands on one side of a step.
  void reserve(std::uint32_t widest) {
    if (widest < widest_) return;
    widest_ = widest + 1;
    pointers_.resize(std::size_t{2} * widest_);
    sources_.resize(widest_);
    targets_.resize(std::size_t{2} * widest_);  // Twice: sources may also be stored back.
    stage_.resize(std::size_t{widest_ + 1} * kStageBytes);
    encoded_.assign(std::size_t{3} * widest_, 1);
  }
  static constexpr std::size_t kStageBytes = 640;  // Data of one LL message.

  std::byte** pointers() { return pointers_.data(); }
  const std::byte** sources() { return sources_.data(); }
  std::byte** targets() { return targets_.data(); }
  std::byte* stage() { return stage_.data(); }
  std::uint8_t* encoded_sources() { return encoded_.data(); }
  std::uint8_t* encoded_targets() { return encoded_.data() + widest_; }

 private:
  std::uint32_t widest_ = 0;
  std::vector<std::byte*> pointers_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  std::vector<std::byte> stage_;
  std::vector<std::uint8_t> encoded_;  // Per operand of the next fold: 1 for messages, 0 for memory.
};

// Rounding of compressed messages in one call. Elements are numbered as in the larger of input and output. An element
// therefore has the same number in every buffer it passes through. Scratch repeats this layout.
struct CallRounding {
  bool dithers = false;  // Stochastic rounding by element number, with key `key`.
  std::uint64_t key = 0;
  // Error feedback: quantization errors of sums are added here, indexed by element. Null: discarded.
  float* quantization_errors = nullptr;

  const std::byte* begins[3] = {};  // Start of input, output and scratch.
  std::uint64_t firsts[3] = {};     // Number of the first element in each.
  std::uint64_t elements = 1;
  std::uint64_t element_bytes = 1;

  std::uint64_t number(Space space, const std::byte* pointer) const {
    const auto at = static_cast<int>(space);
    const auto offset = static_cast<std::uint64_t>(pointer - begins[at]) / element_bytes;
    return (offset + firsts[at]) % elements;
  }
};

class CpuBackend {
 public:
  CpuBackend(BackendMemory& memory, FoldFunction function, const FoldArguments& arguments)
      : function_(function),
        arguments_(arguments),
        sources_(memory.sources()),
        targets_(memory.targets()),
        encoded_sources_(memory.encoded_sources()),
        encoded_targets_(memory.encoded_targets()),
        stage_(memory.stage()) {
    arguments_.sources = sources_;
    arguments_.targets = targets_;
  }

  // Enables non-temporal stores to the caller's output: it is large and was not read.
  void stream_output(bool streams) {
    streams_output_ = streams;
    set_plain();
  }

  // Enables prefetching of this rank's buffers, which are in no cache.
  void fetch_buffers(bool fetches) {
    fetches_buffers_ = fetches;
    set_plain();
  }

  // Sets the scalar for this rank's input (pre_mul_sum).
  void scale(const Factor& factor) {
    arguments_.scale = factor.scale;
    arguments_.imaginary_scale = factor.imaginary_scale;
    arguments_.integer_scale = factor.integer_scale;
    scales_ = true;
    set_plain();
  }

  // Enables compression. `fold` must outlive the backend.
  void encode(const CompressedFold* fold) {
    compression_ = fold;
    set_plain();
  }

  // Sets the rounding of the next run. Null: round to nearest, no error feedback. `rounding` must outlive the run.
  void round(const CallRounding* rounding) { rounding_ = rounding; }

  bool stores_back(const LaneState& lane, std::uint64_t bytes) const {
    return compression_ == nullptr && arguments_.cache_policy.stores_back(bytes) && returns_empty_slots(lane.view);
  }

  // ---- Thread 0 of 1 ----
  static constexpr bool serves(const LaneState*) { return true; }
  static constexpr bool takes(std::uint32_t) { return true; }
  template <typename Poll>
  static Progress await(Poll&& poll) {
    return poll();
  }
  static constexpr Progress agree(Progress progress) { return progress; }
  static constexpr void join() {}
  struct Part {
    static constexpr std::uint32_t first = 0, step = 1;
    static constexpr bool leads() { return true; }
  };
  static constexpr Part part(std::uint32_t) { return {}; }
  static constexpr Part served(const LaneState*) { return {}; }
  static constexpr Part taken() { return {}; }

  static Progress receive_ll_message(LaneState& lane, Signature signature, std::uint64_t bytes, Part, std::byte*& data,
                                     Blocked& blocked) {
    return receive_ll(lane, signature, bytes, data, data, blocked);
  }
  static void send_ll_message(const LaneState& lane, Signature signature, const std::byte* data, std::uint64_t bytes,
                              Part) {
    send_ll(lane, signature, data, bytes);
  }
  static void take_ll_message(LaneState& lane) { take(lane); }
  static void count_ll_message(LaneState& lane, Signature, std::uint64_t) { count_message(lane); }
  static void copy(std::uint32_t, std::uint64_t, Fold) {}  // Copies are joined for thread blocks only.

  std::byte* stage(std::uint32_t operand) { return stage_ + operand * BackendMemory::kStageBytes; }

  // True if nothing is scaled, streamed, prefetched or compressed.
  bool plain() const { return plain_; }

  void source(std::uint32_t index, std::byte* pointer) { sources_[index] = pointer; }
  void target(std::uint32_t index, std::byte* pointer) { targets_[index] = pointer; }
  void source(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    sources_[index] = pointer;
    encoded_sources_[index] = !operand.is_memory();
    number(operand, pointer);
    if (operand.space == Space::input) own_ = index;
    if (fetches_buffers_ && operand.is_memory() && operand.reserved == 0 && index < 64)
      arguments_.fetched_sources |= std::uint64_t{1} << index;
  }
  void target(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    targets_[index] = pointer;
    encoded_targets_[index] = !operand.is_memory();
    number(operand, pointer);
    if (streams_output_ && operand.space == Space::output && index < 64)
      arguments_.streamed_targets |= std::uint64_t{1} << index;
  }

  // Only steps of thread blocks have several folds.
  void fold(std::uint32_t sources, std::uint32_t targets, std::uint64_t count, Fold kind, std::uint32_t = 1) {
    arguments_.source_count = sources;
    arguments_.target_count = targets;
    arguments_.count = count;
    arguments_.complete = kind == Fold::complete;
    if (plain_) {
      function_(arguments_);
      return;
    }
    const bool only_input = sources == 1 && own_ == 0;
    arguments_.own = scales_ ? own_ : FoldArguments::kNone;
    own_ = FoldArguments::kNone;
    if (compression_ != nullptr) {
      (*compression_)(arguments_, encoded(only_input, count));
      std::fill_n(encoded_sources_, sources, 1);
      std::fill_n(encoded_targets_, targets, 1);
    } else {
      function_(arguments_);
    }
    arguments_.streamed_targets = 0;
    arguments_.fetched_sources = 0;
  }

 private:
  // Every step has at least one memory operand, which determines the element numbers.
  void number(const Operand& operand, const std::byte* pointer) {
    if (rounding_ != nullptr && operand.is_memory()) first_ = rounding_->number(operand.space, pointer);
  }
  // Input alone causes no quantization error if a residual is used, because it was rounded beforehand.
  Encoded encoded(bool only_input, std::uint64_t count) {
    Encoded encoded = {.sources = encoded_sources_, .targets = encoded_targets_};
    if (rounding_ == nullptr) return encoded;
    dither_ = {rounding_->key, first_};
    if (rounding_->dithers) encoded.dither = &dither_;
    if (rounding_->quantization_errors == nullptr || only_input) return encoded;
    TUTTI_ASSERT(first_ + count <= rounding_->elements);
    encoded.quantization_errors = rounding_->quantization_errors + first_;
    return encoded;
  }
  void set_plain() {
    plain_ = !scales_ && !streams_output_ && !fetches_buffers_ && compression_ == nullptr;
    arguments_.own = own_ = FoldArguments::kNone;
  }

  FoldFunction function_;
  FoldArguments arguments_;
  const std::byte** sources_;
  std::byte** targets_;
  std::uint8_t* encoded_sources_;
  std::uint8_t* encoded_targets_;
  std::byte* stage_;
  const CompressedFold* compression_ = nullptr;
  const CallRounding* rounding_ = nullptr;
  std::uint64_t first_ = 0;  // Element number of the next fold's first element.
  Dither dither_ = {};       // Random sequence at first_.
  bool plain_ = true;
  bool scales_ = false;
  bool streams_output_ = false;
  bool fetches_buffers_ = false;
  std::uint32_t own_ = FoldArguments::kNone;  // Index of the source that is this rank's input and must be scaled.
};

}  // namespace tutti
