// What a call asks of rounding beyond its format: random numbers, and that what rounding takes is kept. The same
// numbers and bits as on host memory. Host and device compile this source.
#pragma once

#include "src/compression/codec.h"
#include "src/compression/philox.h"
#include "src/executor/thread_block/operands.h"
#include "src/plan/step.h"

namespace tutti {

// What an operand of a fold is: memory of the rank's, or a message.
enum class CompressedOperand : std::uint8_t { own_input, output, scratch, message };

// What the operands of a fold are. Shared by the thread block.
struct CompressedMarks {
  const CompressedOperand* sources = nullptr;
  const CompressedOperand* targets = nullptr;
};

// Of a call, in its device's memory; then, with what is the thread block's own, in that of each thread block. Elements
// are counted as in the longer of input and output, scratch being laid out like that over and over: see
// docs/reference/compression-formats.md.
struct KernelRounding {
  std::uint64_t key = 0;        // Of the random numbers of messages,
  std::uint64_t input_key = 0;  // and of those of an input that goes with a residual.
  // By channel: how often a graph has run the call, which draws other numbers each time. Null: it runs once.
  std::uint32_t* runs = nullptr;
  float* losses = nullptr;  // Of element 0, where what rounding takes from sums is added; null: nowhere.
  std::uint64_t elements = 1;
  std::uint64_t firsts[2] = {};     // Numbers of the first elements of input and output.
  const std::byte* begins[3] = {};  // Of a thread block's: its input, output and scratch.
  std::uint32_t dithers = 0;        // 1: by random numbers.
  std::uint32_t reserved = 0;

  TUTTI_HOST_DEVICE bool asks() const { return dithers != 0 || losses != nullptr; }
  TUTTI_HOST_DEVICE std::uint64_t number(CompressedOperand place, const std::byte* pointer, DataType type) const {
    const auto at = static_cast<std::uint32_t>(place);
    const auto offset = static_cast<std::uint64_t>(pointer - begins[at]) / (type == DataType::float32 ? 4 : 2);
    const std::uint64_t number = at < 2 ? offset + firsts[at] : offset;
    return number < elements ? number : number % elements;
  }
};
static_assert(sizeof(KernelRounding) == 88);

// Of the first run the key itself, so that it is the host's.
TUTTI_HOST_DEVICE inline std::uint64_t key_of_run(std::uint64_t key, std::uint32_t run) {
  if (run == 0) return key;
  const PhiloxBlock other = philox({{run, 0, 1, 0}}, key);
  return std::uint64_t{other.words[1]} << 32 | other.words[0];
}

// Of one fold.
struct FoldRounding {
  Dither dither = {};       // Of its first element.
  float* losses = nullptr;  // Of that, too.
  bool dithers = false;
};

// Some memory is among the operands of every step, and the last says which elements they are. An input that a residual
// goes with loses nothing any more.
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
          .losses = call.losses == nullptr || only_input ? nullptr : call.losses + first,
          .dithers = call.dithers != 0};
}

}  // namespace tutti
