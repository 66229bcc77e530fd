#include "src/plan/verify_store.h"

namespace tutti {
namespace {

constexpr std::uint32_t kCaller = ~0u;  // Replaces the number of a step.

const char* name(Races::Kind kind) { return kind == Races::Kind::read ? "read" : "write"; }

}  // namespace

Store::Store(const CellProgram& program, const Span& span)
    : program_(program),
      span_(span),
      reduces_(reduces(program.plans[0].problem.collective)),
      postcondition_(program, values_, span.rounded),
      cells_(std::size_t{span.chunks} * program.all_cells) {
  const auto ranks = static_cast<std::uint32_t>(program.plans.size());
  if (span.races) races_.emplace(ranks, static_cast<std::uint32_t>(cells_.size()));
}

Status Store::read(const Moment& now, const Access& access, std::vector<Value>& values) {
  values.resize(access.count);
  for (std::uint32_t k = 0; k < access.count; ++k) {
    const std::uint32_t cell = program_.cells[access.index + k];
    if (races_) TUTTI_CHECK_OK(check_race(now, cell, Races::Kind::read));
    values[k] = cells_[index(now, cell)];
    TUTTI_CHECK_OK(take(now, access, cell, values[k]));
  }
  return {};
}

// Checks a value that a step reads. Reductions must read each contribution from the input, and only from there.
Status Store::take(const Moment& now, const Access& access, std::uint32_t cell, Value& value) {
  if (value == 0)
    return violation(now, "unwritten: reads " + program_.describe_cell(cell) + ", which no step has written");
  if (!reduces_) return {};
  const Value input = values_.read_input(value);
  if (access.space == Space::input && input == 0) {
    return violation(now,
                     "overwritten: reads input where " + program_.describe_cell(cell) + " has been written in place");
  }
  if (access.space != Space::input && input != 0) {
    return violation(now,
                     "unwritten: reads " + program_.describe_cell(cell) + ", which in place still holds the input");
  }
  if (input != 0) value = input;
  return {};
}

Status Store::write(const Moment& now, const Access& access, const std::vector<Value>& values) {
  for (std::uint32_t k = 0; k < access.count; ++k) {
    const std::uint32_t cell = program_.cells[access.index + k];
    if (races_) TUTTI_CHECK_OK(check_race(now, cell, Races::Kind::write));
    cells_[index(now, cell)] = values[k];
  }
  return {};
}

Status Store::enter(const Moment& now) {
  const MemoryCells& memory = program_.memories[now.rank];
  TUTTI_CHECK_OK(caller_writes(now));
  for (Moment chunk = now; chunk.chunk < span_.chunks; ++chunk.chunk) {
    for (std::uint32_t k = 0; k < memory.input_cells; ++k) {
      cells_[index(chunk, memory.input + k)] = values_.input(now.rank, k, run_of(chunk));
    }
  }
  return {};
}

Status Store::leave(const Moment& now) {
  const MemoryCells& memory = program_.memories[now.rank];
  for (Moment chunk = now; chunk.chunk < span_.chunks; ++chunk.chunk) {
    for (std::uint32_t k = 0; k < memory.output_cells; ++k) {
      const std::uint32_t cell = memory.output + k;
      const std::string wrong = postcondition_.check(now.rank, k, cells_[index(chunk, cell)], run_of(chunk));
      if (wrong.empty()) continue;
      chunk.step = kCaller;
      return violation(chunk, "at its return " + program_.describe_cell(cell) + ": " + wrong);
    }
  }
  return caller_writes(now);
}

// Models a caller that may read and write its buffers whenever it has no operation in progress, and operations of other
// plans in the same scratch.
Status Store::caller_writes(const Moment& now) {
  const MemoryCells& memory = program_.memories[now.rank];
  const std::uint32_t ranges[3][2] = {
      {memory.output, memory.output_cells}, {memory.input, memory.input_cells}, {memory.scratch, memory.scratch_cells}};
  for (Moment chunk = now; chunk.chunk < span_.chunks; ++chunk.chunk) {
    chunk.step = kCaller;
    for (const auto& [first, count] : ranges) {
      for (std::uint32_t cell = first; cell < first + count; ++cell) {
        if (races_) TUTTI_CHECK_OK(check_race(chunk, cell, Races::Kind::write));
        cells_[index(chunk, cell)] = 0;
      }
    }
  }
  return {};
}

Status Store::check_race(const Moment& now, std::uint32_t cell, Races::Kind kind) {
  const Races::Access access{.process = now.rank, .time = 0, .run = run_of(now), .step = now.step, .kind = kind};
  const auto other = races_->access(static_cast<std::uint32_t>(index(now, cell)), access);
  if (!other) return {};
  const Moment then{.rank = other->process,
                    .operation = other->run / span_.chunks,
                    .chunk = other->run % span_.chunks,
                    .step = other->step};
  return violation(now, std::string("race: ") + (now.step == kCaller ? "its caller's " : "its ") + name(kind) + " of " +
                            program_.describe_cell(cell) + " is not ordered after the " + name(other->kind) + " by " +
                            (then.step == kCaller ? "the caller of " : "") + describe(then));
}

std::string Store::describe(const Moment& now) const {
  const std::string when = span_.operations > 1 ? "operation " + std::to_string(now.operation) + ", " : "";
  const std::string who =
      now.step == kCaller ? "rank " + std::to_string(now.rank) : describe_step(program_.plans[now.rank], now.step);
  return when + "chunk " + std::to_string(now.chunk) + ", " + who;
}

Status Store::violation(const Moment& now, const std::string& violation) const {
  return internal_error(describe(now) + ": " + violation);
}

}  // namespace tutti
