// Rounding options of a call: stochastic rounding and error feedback. Numbers and bits equal those of host memory. Host
// and device compile this source.
#pragma once

#include "src/compression/codec.h"
#include "src/compression/philox.h"
#include "src/executor/thread_block/operands.h"
#include "src/plan/step.h"

namespace tutti {

// Kind of a fold's operand: this rank's memory, or a message.
enum class CompressedOperand : std::uint8_t { own_input, output, scratch, message };

// Kinds of a fold's operands. Shared by the thread block.
struct CompressedMarks {
  const CompressedOperand* sources = nullptr;
  const CompressedOperand* targets = nullptr;
};

// Rounding options of a call in device memory; each thread block works on a completed copy. Elements are numbered as in
// the longer of input and output; scratch repeats this layout. See docs/reference/compression-formats.md.
struct KernelRounding {
  std::uint64_t key = 0;        // Random key for messages.
  std::uint64_t input_key = 0;  // Random key for an input with a residual.
  // [channel]: how often a graph has run the call; each run uses other random numbers. Null: the call runs once.
  std::uint32_t* runs = nullptr;
  float* quantization_errors =
      nullptr;  // Error feedback: quantization errors of sums are added here, by element. Null: discarded.
  std::uint64_t elements = 1;
  std::uint64_t firsts[2] = {};     // Number of the first element of input and of output.
  const std::byte* begins[3] = {};  // In a thread block's copy: its input, output and scratch.
  std::uint32_t dithers = 0;        // 1: stochastic rounding.
  std::uint32_t reserved = 0;

  TUTTI_HOST_DEVICE bool is_requested() const { return dithers != 0 || quantization_errors != nullptr; }
  TUTTI_HOST_DEVICE std::uint64_t number(CompressedOperand operand, const std::byte* pointer, DataType type) const {
    const auto at = static_cast<std::uint32_t>(operand);
    const auto offset = static_cast<std::uint64_t>(pointer - begins[at]) / (type == DataType::float32 ? 4 : 2);
    const std::uint64_t number = at < 2 ? offset + firsts[at] : offset;
    return number < elements ? number : number % elements;
  }
};
static_assert(sizeof(KernelRounding) == 88);

// Random key of a run. The first run uses `key` itself, as the host does.
TUTTI_HOST_DEVICE inline std::uint64_t key_of_run(std::uint64_t key, std::uint32_t run) {
  if (run == 0) return key;
  const PhiloxWords other = philox({{run, 0, 1, 0}}, key);
  return std::uint64_t{other.words[1]} << 32 | other.words[0];
}

// Rounding of one fold.
struct FoldRounding {
  Dither dither = {};                    // At its first element.
  float* quantization_errors = nullptr;  // At its first element.
  bool dithers = false;
};

// Every step has a memory operand; the last one determines the element numbers. Input alone loses nothing if a residual
// is used, because it was rounded beforehand.
TUTTI_HOST_DEVICE inline FoldRounding rounding_of(const KernelRounding& call, const FoldOperands& operands,
                                                  const CompressedMarks& marks, DataType type) {
  std::uint64_t first = 0;
  for (std::uint32_t k = 0; k < operands.source_count; ++k)
    if (marks.sources[k] != CompressedOperand::message)
      first = call.number(marks.sources[k], operands.sources[k], type);
  for (std::uint32_t k = 0; k < operands.target_count; ++k)
    if (marks.targets[k] != CompressedOperand::message)
      first = call.number(marks.targets[k], operands.targets[k], type);
  const bool only_input = operands.source_count == 1 && marks.sources[0] == CompressedOperand::own_input;
  return {.dither = {call.key, first},
          .quantization_errors =
              call.quantization_errors == nullptr || only_input ? nullptr : call.quantization_errors + first,
          .dithers = call.dithers != 0};
}

}  // namespace tutti
