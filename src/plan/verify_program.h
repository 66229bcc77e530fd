// The plans of all ranks, with memory resolved to cells and lanes to numbers, as input of the symbolic run. compile()
// detects errors that need no run: ranges outside of memory, ends that disagree, messages without a receiver.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/plan/plan.h"

namespace tutti {

// A cell is a run of units that no operand of any rank separates. Every block is cut at the same positions. Cells of
// one class have the same length.
struct MemoryCells {
  std::uint32_t input = 0, output = 0, scratch = 0;  // First cell; input and output overlap in place.
  std::uint32_t input_cells = 0, output_cells = 0, scratch_cells = 0;
};

// A lane or a flag, with one writer and one reader.
struct Fifo {
  Space space = Space::lane;
  std::uint16_t tag = 0;
  Rank writer = 0, reader = 0;
};

// One operand of a step.
struct Access {
  Space space = Space::input;
  std::uint32_t index = 0;   // Memory: index of its first cell in CellProgram::cells. Lane, flag: index of the fifo.
  std::uint32_t count = 0;   // Cells of each owner.
  std::uint32_t owners = 1;  // Ranks whose memory it is: the cells of one follow those of another.

  // The same in the memory of one owner.
  Access of(std::uint32_t owner) const { return {space, index + owner * count, count, 1, occurrence}; }
  std::uint32_t occurrence = 0;  // Lane, flag: number of earlier uses on the same side of the step.
};

struct CellProgram {
  std::span<const Plan> plans;
  std::uint32_t width = 1;  // Cells per block.
  // Cells below this number are input or output; cells from here to `all_cells` are scratch.
  std::uint32_t user_cells = 0;
  std::uint32_t all_cells = 0;
  std::vector<MemoryCells> memories;  // By rank.
  std::vector<Fifo> fifos;
  std::vector<std::uint32_t> cells;       // Cells of all memory operands.
  std::vector<std::uint32_t> cell_class;  // Position of each cell in its block, below `width`.
  std::vector<std::uint32_t> class_unit;  // First unit of each class within its block.
  std::vector<Access> accesses;           // All operands, in the order of ranks, steps, sources, targets.
  std::vector<std::vector<std::uint32_t>> first_access;  // [rank][step]
  bool mapped = false;                                   // Some operand is a peer's memory.
  bool drained = true;                                   // See Proof.
  bool balanced = true;
  std::uint32_t longest = 0;
  std::uint64_t messages = 0;

  std::uint32_t stages() const { return static_cast<std::uint32_t>(plans[0].shape.stages.size()); }
  // First round of the stage.
  std::uint32_t stage_begin(std::uint32_t stage) const { return plans[0].shape.stages[stage]; }
  std::uint32_t stage_end(std::uint32_t stage) const {
    return stage + 1 < stages() ? plans[0].shape.stages[stage + 1] : plans[0].shape.rounds;
  }
  // Returns whether `count` entries of CellProgram::cells from a and from b have pairwise equal lengths.
  bool alike(std::uint32_t a, std::uint32_t b, std::uint32_t count) const;
  // For example, "output[3] of rank 1"; in place, the name of the output.
  std::string describe_cell(std::uint32_t cell) const;
};

Result<CellProgram> compile(std::span<const Plan> plans);

// Returns, for example, "rank 2, round 5, step 1".
std::string describe_step(const Plan& plan, std::uint32_t step);

}  // namespace tutti
