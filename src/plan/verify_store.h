// The memory of all ranks in the symbolic run, for all chunks, and the callers before and after each operation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/plan/verify_program.h"
#include "src/plan/verify_races.h"
#include "src/plan/verify_values.h"

namespace tutti {

// The part of an endless loop that is run.
struct Span {
  std::uint32_t operations = 1;
  std::uint32_t chunks = 1;
  std::uint32_t ring = 1;  // Chunks after which scratch is reused.
  bool races = false;      // Ranks access each other's memory, so the order of accesses must be proved.
  bool rounded = false;    // Messages carry rounded numbers.
};

// A rank and its position in the run, for error messages and vector clocks.
struct Moment {
  Rank rank = 0;
  std::uint32_t operation = 0, chunk = 0;
  std::uint32_t step = 0;
};

class Store {
 public:
  Store(const CellProgram& program, const Span& span);

  // Reads or writes all cells of a memory operand.
  Status read(const Moment& now, const Access& access, std::vector<Value>& values);
  Status write(const Moment& now, const Access& access, const std::vector<Value>& values);

  // enter() gives the caller fresh input and undefined output. leave() checks the outputs of the operation. Both count
  // as writes of `now.rank` to all its memory, since the caller may use its buffers before entry and after return, and
  // other operations use the same scratch.
  Status enter(const Moment& now);
  Status leave(const Moment& now);

  Values& values() { return values_; }
  double rounded() const { return postcondition_.rounded(); }
  Races* races() { return races_ ? &*races_ : nullptr; }

  // Returns an error that begins like "chunk 0, rank 2, round 5, step 1: ", followed by `violation`.
  Status violation(const Moment& now, const std::string& violation) const;

 private:
  std::uint32_t run_of(const Moment& now) const { return now.operation * span_.chunks + now.chunk; }
  std::size_t index(const Moment& now, std::uint32_t cell) const {
    const std::uint32_t place = cell < program_.user_cells ? now.chunk : now.chunk % span_.ring;
    return std::size_t{place} * program_.all_cells + cell;
  }
  Status take(const Moment& now, const Access& access, std::uint32_t cell, Value& value);
  Status check_race(const Moment& now, std::uint32_t cell, Races::Kind kind);
  Status caller_writes(const Moment& now);
  std::string describe(const Moment& now) const;

  const CellProgram& program_;
  const Span span_;
  const bool reduces_;
  Values values_;
  Postcondition postcondition_;
  std::vector<Value> cells_;
  std::optional<Races> races_;
};

}  // namespace tutti
