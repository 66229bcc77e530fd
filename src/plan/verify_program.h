// All ranks' plans with memory resolved to cells and lanes to numbers: what the symbolic run reads. Compiling them
// finds what needs no run: ranges outside of memory, ends that disagree, messages without a receiver.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/plan/plan.h"

namespace tutti {

// Cells are the units, joined where no operand of any rank tells them apart: memory is cut at the same places of every
// block. Cells of one class are equally long.
struct MemoryCells {
  std::uint32_t input = 0, output = 0, scratch = 0;  // First cell; in place, input and output overlap.
  std::uint32_t input_cells = 0, output_cells = 0, scratch_cells = 0;
};

// A lane or a flag: one writer, one reader.
struct Fifo {
  Place place = Place::lane;
  std::uint16_t tag = 0;
  Rank writer = 0, reader = 0;
};

// One operand of a step.
struct Access {
  Place place = Place::input;
  std::uint32_t index = 0;       // Memory: where its cells begin in CellProgram::cells. Lane, flag: which fifo.
  std::uint32_t count = 0;       // Cells.
  std::uint32_t occurrence = 0;  // Lane, flag: how often the same side of the step has named it before.
};

struct CellProgram {
  std::span<const Plan> plans;
  std::uint32_t width = 1;       // Cells per block.
  std::uint32_t user_cells = 0;  // Cells below are input or output, the rest up to `all_cells` scratch.
  std::uint32_t all_cells = 0;
  std::vector<MemoryCells> memories;  // Of each rank.
  std::vector<Fifo> fifos;
  std::vector<std::uint32_t> cells;                      // Of all memory operands.
  std::vector<std::uint32_t> cell_class;                 // Where in its block each cell lies, below `width`.
  std::vector<std::uint32_t> class_unit;                 // First unit, within its block, of each class.
  std::vector<Access> accesses;                          // Of all operands: ranks, steps, sources, targets.
  std::vector<std::vector<std::uint32_t>> first_access;  // [rank][step]
  bool mapped = false;                                   // Some operand is a peer's memory.
  bool drained = true;                                   // See Proof.
  bool balanced = true;
  std::uint32_t longest = 0;
  std::uint64_t messages = 0;

  std::uint32_t stages() const { return static_cast<std::uint32_t>(plans[0].shape.stages.size()); }
  std::uint32_t stage_begin(std::uint32_t stage) const { return plans[0].shape.stages[stage]; }  // A round.
  std::uint32_t stage_end(std::uint32_t stage) const {
    return stage + 1 < stages() ? plans[0].shape.stages[stage + 1] : plans[0].shape.rounds;
  }
  // Whether `count` of CellProgram::cells from a and from b are equally long one by one.
  bool alike(std::uint32_t a, std::uint32_t b, std::uint32_t count) const;
  std::string describe_cell(std::uint32_t cell) const;  // "output[3] of rank 1"; in place, the output's name.
};

Result<CellProgram> compile(std::span<const Plan> plans);

// "rank 2, round 5, step 1"
std::string describe_place(const Plan& plan, std::uint32_t step);

}  // namespace tutti
