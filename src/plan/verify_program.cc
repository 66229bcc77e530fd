#include "src/plan/verify_program.h"

#include <algorithm>

#include "src/plan/print.h"
#include "src/plan/verify_balance.h"

namespace tutti {
namespace {

constexpr std::uint32_t kNoIndex = ~0u;

Status at_step(const Plan& plan, std::uint32_t step, const std::string& violation) {
  return internal_error(describe_step(plan, step) + ": " + violation);
}

class Compiler {
 public:
  explicit Compiler(std::span<const Plan> plans) { program_.plans = plans; }

  Result<CellProgram> compile() && {
    TUTTI_CHECK_OK(check_shapes());
    for (const Plan& plan : program_.plans) TUTTI_CHECK_OK(check_operands(plan));
    cut_blocks();
    lay_out_memories();
    program_.accesses.reserve(operands_);
    program_.cells.reserve(operands_);
    first_fifo_.assign(program_.plans.size() * program_.plans.size(), kNoIndex);
    for (const Plan& plan : program_.plans) TUTTI_CHECK_OK(compile_steps(plan));
    TUTTI_CHECK_OK(check_balance(program_));
    return std::move(program_);
  }

 private:
  Status check_shapes() const {
    const Plan& first = program_.plans[0];
    if (program_.plans.size() != first.problem.ranks)
      return internal_error("the number of plans differs from the number of ranks");
    if (first.shape.units == 0 || first.shape.stages.empty() || first.shape.stages[0] != 0) {
      return internal_error("the shape has no units, or no stage that begins with round 0");
    }
    for (Rank rank = 0; rank < first.problem.ranks; ++rank) {
      const Plan& plan = program_.plans[rank];
      const bool agrees = plan.problem == first.problem && plan.shape.units == first.shape.units &&
                          plan.shape.scratch == first.shape.scratch && plan.shape.rounds == first.shape.rounds &&
                          plan.shape.stages == first.shape.stages;
      if (plan.steps.self() != rank || !agrees) {
        return internal_error("rank " + std::to_string(rank) + ": its problem or shape differs from rank 0's");
      }
      if (plan.rounds.size() != plan.shape.rounds + 1u || plan.rounds.back() != plan.steps.size()) {
        return internal_error("rank " + std::to_string(rank) + ": its rounds do not cover its steps");
      }
    }
    return {};
  }

  Status check_operands(const Plan& plan) {
    for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
      const Step step = plan.steps[i];
      operands_ += step.sources.size() + step.targets.size();
      for (const std::span<const Operand> side : {step.sources, step.targets}) {
        for (const Operand& operand : side) {
          const std::string violation = check_operand(operand, plan.steps.self());
          if (!violation.empty()) return at_step(plan, i, describe(operand, plan.steps.self()) + " " + violation);
          program_.mapped |= operand.is_memory() && operand.peer != plan.steps.self();
        }
      }
      const std::string violation = check_step(step, plan.problem);
      if (!violation.empty()) return at_step(plan, i, violation);
    }
    return {};
  }

  std::string check_operand(const Operand& operand, Rank self) const {
    const Problem& problem = program_.plans[0].problem;
    const RankRange owners = owners_of(operand, problem, self);
    if (owners.first >= problem.ranks || owners.end > problem.ranks || owners.first == owners.end)
      return "names a rank that does not exist";
    if (!operand.is_memory() || operand.count == 0) return "";
    if (operand.run == 0 || (operand.run < operand.count && operand.stride < operand.run)) return "overlaps itself";
    std::uint64_t units = ~std::uint64_t{0};
    for (Rank owner = owners.first; owner < owners.end; ++owner)
      units = std::min(units, units_of(operand.space, owner));
    const std::uint64_t whole_runs = operand.run >= operand.count ? 0 : (operand.count - 1) / operand.run;
    const std::uint64_t last =
        operand.first + whole_runs * operand.stride + operand.count - 1 - whole_runs * operand.run;
    if (last >= units) return "lies outside of its " + std::to_string(units) + " units";
    return "";
  }

  // Units of a rank's memory.
  std::uint64_t units_of(Space space, Rank owner) const {
    const Problem& problem = program_.plans[0].problem;
    const Shape& shape = program_.plans[0].shape;
    if (space == Space::scratch) return shape.scratch;
    return shape.units *
           std::uint64_t{space == Space::input ? input_blocks(problem, owner) : output_blocks(problem, owner)};
  }

  static std::string check_step(const Step& step, const Problem& problem) {
    const auto is_data = [](const Operand& operand) { return operand.space != Space::flag; };
    const auto sources = std::count_if(step.sources.begin(), step.sources.end(), is_data);
    const auto targets = std::count_if(step.targets.begin(), step.targets.end(), is_data);
    if ((sources == 0) != (targets == 0)) return "has sources without targets, or targets without sources";
    std::uint32_t count = kNoIndex;
    for (const std::span<const Operand> side : {step.sources, step.targets}) {
      for (const Operand& operand : side) {
        if (!is_data(operand)) continue;
        if (count == kNoIndex) count = operand.count;
        if (operand.count != count)
          return "its operands differ in length: " + std::to_string(count) + " and " + std::to_string(operand.count) +
                 " units";
      }
    }
    for (const Operand& operand : step.targets) {
      if (operand.space == Space::input) return "writes the caller's input";
    }
    for (const Operand& operand : step.sources) {
      if (operand.is_of_several() && operand.space == Space::output)
        return "folds the outputs of all ranks; such a fold reads inputs or scratch";
    }
    if (step.fold == Fold::complete && !reduces(problem.collective))
      return "a complete fold in a collective that does not reduce";
    const auto is_all = [](const Operand& operand) { return operand.is_of_several(); };
    const bool from_all = std::any_of(step.sources.begin(), step.sources.end(), is_all);
    if ((from_all || std::any_of(step.targets.begin(), step.targets.end(), is_all)) && (sources != 1 || targets != 1))
      return "accesses memory of all ranks beside other sources or targets";
    if (step.fold == Fold::complete && sources < 2 && !from_all && problem.ranks > 1)
      return "a copy is marked as a complete fold";
    return "";
  }

  // Calls visit(first, length) for each run of a memory operand.
  template <typename Visit>
  static void for_each_run(const Operand& operand, Visit visit) {
    for (std::uint32_t done = 0, first = operand.first; done < operand.count;
         done += operand.run, first += operand.stride) {
      visit(first, std::min(operand.run, operand.count - done));
    }
  }

  // Numbers the cells. A hierarchical plan has thousands of units in a block, but operands begin and end at few of
  // them.
  void cut_blocks() {
    const Shape& shape = program_.plans[0].shape;
    std::vector<char> is_cut(shape.units, 0);
    is_cut[0] = 1;
    for (const Plan& plan : program_.plans) {
      for (std::uint32_t i = 0; i < plan.steps.size(); ++i) mark_cuts(plan.steps[i], is_cut);
    }
    for (std::uint32_t unit = 0; unit < shape.units; ++unit) {
      if (is_cut[unit] != 0) program_.class_unit.push_back(unit);
    }
    program_.width = static_cast<std::uint32_t>(program_.class_unit.size());

    const Problem& problem = program_.plans[0].problem;
    std::uint32_t blocks = shape.scratch / shape.units + 1;  // Blocks of the largest memory.
    for (Rank rank = 0; rank < problem.ranks; ++rank) {
      blocks = std::max({blocks, input_blocks(problem, rank), output_blocks(problem, rank)});
    }
    first_cell_.reserve(std::size_t{blocks} * shape.units + 1);
    std::uint32_t cells = 0;
    for (std::uint32_t block = 0; block < blocks; ++block) {
      for (const char cut : is_cut) first_cell_.push_back((cells += cut) - 1);
    }
    first_cell_.push_back(cells);
  }

  void mark_cuts(const Step& step, std::vector<char>& is_cut) {
    const auto units = static_cast<std::uint32_t>(is_cut.size());
    const auto within = [&](std::uint32_t unit) { return unit < units ? unit : unit % units; };
    for (const std::span<const Operand> side : {step.sources, step.targets}) {
      for (const Operand& operand : side) {
        if (!operand.is_memory()) continue;
        for_each_run(operand, [&](std::uint32_t first, std::uint32_t length) {
          is_cut[within(first)] = 1;
          is_cut[within(first + length)] = 1;
        });
      }
    }
  }

  void lay_out_memories() {
    const Problem& problem = program_.plans[0].problem;
    const std::uint32_t width = program_.width;
    program_.memories.resize(problem.ranks);
    for (Rank rank = 0; rank < problem.ranks; ++rank) {
      MemoryCells& memory = program_.memories[rank];
      memory.input_cells = input_blocks(problem, rank) * width;
      memory.output_cells = output_blocks(problem, rank) * width;
      // In place, input block i is output block i + shift. The buffer that begins later is moved.
      const std::int64_t shift = problem.in_place ? in_place_shift(problem, rank) : input_blocks(problem, rank) * -1LL;
      memory.input = program_.user_cells + static_cast<std::uint32_t>(std::max<std::int64_t>(shift, 0)) * width;
      memory.output = program_.user_cells + static_cast<std::uint32_t>(std::max<std::int64_t>(-shift, 0)) * width;
      program_.user_cells = std::max(memory.input + memory.input_cells, memory.output + memory.output_cells);
    }
    program_.all_cells = program_.user_cells;
    const std::uint32_t scratch = first_cell_[program_.plans[0].shape.scratch];
    for (MemoryCells& memory : program_.memories) {
      memory.scratch = program_.all_cells;
      memory.scratch_cells = scratch;
      program_.all_cells += (scratch + width - 1) / width * width;
    }
    program_.cell_class.resize(program_.all_cells);
    for (std::uint32_t cell = 0; cell < program_.all_cells; ++cell) program_.cell_class[cell] = cell % width;
  }

  Status compile_steps(const Plan& plan) {
    const Rank self = plan.steps.self();
    std::vector<std::uint32_t>& first = program_.first_access.emplace_back();
    first.reserve(plan.steps.size());
    for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
      const Step step = plan.steps[i];
      const auto begin = static_cast<std::uint32_t>(program_.accesses.size());
      first.push_back(begin);
      for (const Operand& operand : step.sources) compile_operand(operand, self, false);
      name_occurrences(begin);
      const auto targets = static_cast<std::uint32_t>(program_.accesses.size());
      for (const Operand& operand : step.targets) {
        compile_operand(operand, self, true);
        if (operand.space != Space::lane) continue;
        program_.longest = std::max(program_.longest, operand.count);
        ++program_.messages;
      }
      name_occurrences(targets);
      const std::string violation = check_cells(begin, targets);
      if (!violation.empty()) return at_step(plan, i, violation);
    }
    return {};
  }

  void compile_operand(const Operand& operand, Rank self, bool is_target) {
    Access access{.space = operand.space};
    if (!operand.is_memory()) {
      const Rank writer = is_target ? self : operand.peer, reader = is_target ? operand.peer : self;
      access.index = find_fifo({operand.space, operand.tag, writer, reader});
    } else {
      access.index = static_cast<std::uint32_t>(program_.cells.size());
      const RankRange owners = owners_of(operand, program_.plans[0].problem, self);
      access.owners = owners.end - owners.first;
      for (Rank owner = owners.first; owner < owners.end; ++owner) add_cells(operand, program_.memories[owner]);
      access.count = (static_cast<std::uint32_t>(program_.cells.size()) - access.index) / access.owners;
    }
    program_.accesses.push_back(access);
  }

  void add_cells(const Operand& operand, const MemoryCells& memory) {
    const std::uint32_t base = operand.space == Space::input    ? memory.input
                               : operand.space == Space::output ? memory.output
                                                                : memory.scratch;
    for_each_run(operand, [&](std::uint32_t first, std::uint32_t length) {
      const std::uint32_t end = first_cell_[first + length];
      for (std::uint32_t cell = first_cell_[first]; cell < end; ++cell) program_.cells.push_back(base + cell);
    });
  }

  // Fifos between two ranks form a linked list that starts in a table of all pairs, which avoids hashing.
  std::uint32_t find_fifo(const Fifo& wanted) {
    std::uint32_t* link = &first_fifo_[wanted.writer * program_.plans.size() + wanted.reader];
    while (*link != kNoIndex) {
      const Fifo& fifo = program_.fifos[*link];
      if (fifo.space == wanted.space && fifo.tag == wanted.tag) return *link;
      link = &next_fifo_[*link];
    }
    *link = static_cast<std::uint32_t>(program_.fifos.size());
    const std::uint32_t found = *link;
    program_.fifos.push_back(wanted);
    next_fifo_.push_back(kNoIndex);
    fifo_seen_.push_back({});
    return found;
  }

  // A step that receives two messages of a lane needs both to be present, and a step that sends two needs two slots.
  void name_occurrences(std::uint32_t begin) {
    ++side_;
    for (std::size_t i = begin; i < program_.accesses.size(); ++i) {
      Access& access = program_.accesses[i];
      if (access.space < Space::lane) continue;
      Seen& seen = fifo_seen_[access.index];
      if (seen.side != side_) seen = {.side = side_, .count = 0};
      access.occurrence = seen.count++;
    }
  }

  // Returns an error unless all operands have equal lengths unit by unit, no cell is written twice, and no cell is read
  // and written at two positions.
  std::string check_cells(std::uint32_t begin, std::uint32_t targets) {
    const auto end = static_cast<std::uint32_t>(program_.accesses.size());
    const Access* model = nullptr;
    std::uint32_t memories = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      const Access& access = program_.accesses[i];
      if (access.space >= Space::lane) continue;
      ++memories;
      if (model == nullptr) model = &access;
      if (access.count != model->count || !program_.alike(access.index, model->index, access.count)) {
        return "its operands differ in length, because they are different parts of a block";
      }
    }
    return memories < 2 ? "" : check_overlap(begin, targets, end);
  }

  // Executors process a step in parts, so a unit that is both read and written must be at the same position.
  std::string check_overlap(std::uint32_t begin, std::uint32_t targets, std::uint32_t end) {
    written_.resize(program_.all_cells);
    ++overlap_step_;
    for (std::uint32_t i = targets; i < end; ++i) {
      const Access& access = program_.accesses[i];
      for (std::uint32_t k = 0; access.space < Space::lane && k < access.owners * access.count; ++k) {
        Written& written = written_[program_.cells[access.index + k]];
        if (written.step == overlap_step_) return "writes a unit twice";
        written = {.step = overlap_step_, .position = k % access.count};
      }
    }
    for (std::uint32_t i = begin; i < targets; ++i) {
      const Access& access = program_.accesses[i];
      for (std::uint32_t k = 0; access.space < Space::lane && k < access.owners * access.count; ++k) {
        const Written& written = written_[program_.cells[access.index + k]];
        if (written.step == overlap_step_ && written.position != k % access.count)
          return "reads a unit that it writes at another position";
      }
    }
    return "";
  }

  struct Seen {
    std::uint64_t side = 0;
    std::uint32_t count = 0;
  };
  struct Written {
    std::uint32_t step = 0, position = 0;
  };

  CellProgram program_;
  std::size_t operands_ = 0;
  std::vector<std::uint32_t> first_cell_;  // First cell of each unit of the largest memory, and the end.
  std::vector<std::uint32_t> first_fifo_, next_fifo_;
  std::vector<Seen> fifo_seen_;
  std::vector<Written> written_;
  std::uint64_t side_ = 0;
  std::uint32_t overlap_step_ = 0;
};

}  // namespace

bool CellProgram::alike(std::uint32_t a, std::uint32_t b, std::uint32_t count) const {
  const auto same_class = [&](std::uint32_t x, std::uint32_t y) { return cell_class[x] == cell_class[y]; };
  return std::equal(cells.data() + a, cells.data() + a + count, cells.data() + b, same_class);
}

std::string CellProgram::describe_cell(std::uint32_t cell) const {
  for (Rank rank = 0; rank < memories.size(); ++rank) {
    const MemoryCells& memory = memories[rank];
    const auto text = [&](const char* name, std::uint32_t local) {
      const std::uint32_t unit = local / width * plans[0].shape.units + class_unit[local % width];
      return name + ("[" + std::to_string(unit) + "] of rank " + std::to_string(rank));
    };
    if (cell - memory.output < memory.output_cells) return text("output", cell - memory.output);
    if (cell - memory.input < memory.input_cells) return text("input", cell - memory.input);
    if (cell - memory.scratch < memory.scratch_cells) return text("scratch", cell - memory.scratch);
  }
  return "no memory";
}

std::string describe_step(const Plan& plan, std::uint32_t step) {
  const auto after = std::upper_bound(plan.rounds.begin(), plan.rounds.end(), step);
  const auto round = static_cast<std::uint32_t>(after - plan.rounds.begin()) - 1;
  return "rank " + std::to_string(plan.steps.self()) + ", round " + std::to_string(round) + ", step " +
         std::to_string(step - plan.rounds[round]);
}

Result<CellProgram> compile(std::span<const Plan> plans) {
  if (plans.empty()) return internal_error("the list of plans is empty");
  return Compiler(plans).compile();
}

}  // namespace tutti
