// Mutants of a program; see Mutation.
#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>

#include "tests/ptx/machine/report.h"

namespace tutti::ptx {
namespace {

const char* name(Weakening weakening) {
  switch (weakening) {
    case Weakening::release: return "release";
    case Weakening::acquire: return "acquire";
    case Weakening::fence: return "fence";
    case Weakening::order: return "order";
    case Weakening::barrier: return "barrier";
    case Weakening::mask: return "mask";
  }
  return "";
}

bool begins(std::string_view opcode, std::initializer_list<std::string_view> with) {
  return std::any_of(with.begin(), with.end(), [&](std::string_view each) { return opcode.starts_with(each); });
}

bool has(std::string_view opcode, std::string_view part) { return opcode.find(part) != std::string_view::npos; }

std::vector<Weakening> weakenings_of(std::string_view opcode) {
  if (begins(opcode, {"fence.sc", "membar."})) return {Weakening::fence, Weakening::order};
  if (begins(opcode, {"fence."}))
    return has(opcode, ".proxy") ? std::vector<Weakening>() : std::vector{Weakening::fence};
  if (begins(opcode, {"bar.warp."})) return {Weakening::barrier, Weakening::mask};
  if (begins(opcode, {"bar.", "barrier."}))
    return has(opcode, ".popc") ? std::vector<Weakening>() : std::vector{Weakening::barrier};
  if (begins(opcode, {"shfl.", "vote.", "redux.", "match."})) return {Weakening::mask};
  if (!begins(opcode, {"ld.", "st.", "atom.", "red."})) return {};
  if (has(opcode, ".acq_rel")) return {Weakening::release, Weakening::acquire};
  if (has(opcode, ".release")) return {Weakening::release};
  return has(opcode, ".acquire") ? std::vector{Weakening::acquire} : std::vector<Weakening>();
}

std::string replaced(std::string_view text, std::string_view from, std::string_view by) {
  std::string result(text);
  if (const std::size_t at = result.find(from); at != std::string::npos) result.replace(at, from.size(), by);
  return result;
}

constexpr std::uint32_t kAllThreads = ~std::uint32_t{0};

// True if all statements of the function that write the register set it to the mask of all threads.
bool is_always_all(const Function& function, const Operand& mask) {
  const auto writes = [&](const Statement& each) {
    return !each.operands.empty() && each.operands[0].kind == Operand::Kind::reg && each.operands[0].reg == mask.reg &&
           !begins(each.opcode, {"bar."});
  };
  const auto sets_all = [](const Statement& each) {
    return begins(each.opcode, {"mov."}) && each.operands.back().kind == Operand::Kind::number &&
           static_cast<std::uint32_t>(each.operands.back().value) == kAllThreads;
  };
  return std::ranges::all_of(function.statements,
                             [&](const Statement& each) { return !writes(each) || sets_all(each); });
}

void weaken_mask(const Function& function, Operand& mask) {
  const bool is_constant = mask.kind == Operand::Kind::number;
  const auto members = is_constant ? static_cast<std::uint32_t>(mask.value) : kAllThreads;
  const bool loses = is_constant || is_always_all(function, mask);
  mask = {};
  mask.kind = Operand::Kind::number;
  mask.value = loses ? members & ~std::bit_floor(members) : kAllThreads;
}

// The opcode of the weakened statement.
std::string weaken(const Function& function, Statement& statement, Weakening weakening) {
  const std::string_view opcode = statement.opcode;
  const std::string nothing = "nanosleep";
  switch (weakening) {
    case Weakening::release: return replaced(replaced(opcode, ".acq_rel", ".acquire"), ".release", ".relaxed");
    case Weakening::acquire:
      return has(opcode, ".acq_rel") ? replaced(opcode, ".acq_rel", ".release")
                                     : replaced(opcode, ".acquire", ".relaxed");
    case Weakening::fence: return nothing;
    case Weakening::order: return replaced(replaced(opcode, "fence.sc", "fence.acq_rel"), "membar", "fence.acq_rel");
    case Weakening::mask: weaken_mask(function, statement.operands.back()); return std::string(opcode);
    case Weakening::barrier: break;
  }
  if (!has(opcode, ".red.")) return nothing;
  Operand predicate = statement.operands.back();
  statement.operands.resize(1);
  statement.operands.push_back(predicate);
  return predicate.negated ? "not.pred" : "mov.pred";
}

// Name of the first kernel, without namespaces and parameters, which contain a hash of the path.
std::string title_of(const Source& source) {
  for (const Function& function : source.functions) {
    if (!function.is_kernel) continue;
    const std::string plain = demangle(function.name);
    const std::string_view path = std::string_view(plain).substr(0, plain.rfind('('));
    return std::string(path.substr(path.rfind(':') + 1));
  }
  return "";
}

void append_line(const std::string& file, const std::string& line) {
  std::ofstream(file, std::ios::app) << line + "\n" << std::flush;
}

void list_mutants(const Source& source, const std::string& title) {
  for (std::size_t i = 0; i < source.mutants.size(); ++i) {
    const Mutant& mutant = source.mutants[i];
    const Function& function = source.functions[mutant.function];
    append_line(source.executed, "mutant\t" + title + "#" + std::to_string(i) + "\t" + name(mutant.weakening) + "\t" +
                                     describe_statement(source, function.statements[mutant.statement]));
  }
}

}  // namespace

Status mutate_source(Source& source, const Mutation& mutation) {
  if (mutation.mutant.empty() && mutation.executed.empty()) return {};
  source.executed = mutation.executed;
  for (std::size_t f = 0; f < source.functions.size(); ++f) {
    std::vector<Statement>& statements = source.functions[f].statements;
    for (std::size_t s = 0; s < statements.size(); ++s) {
      const std::vector<Weakening> all = weakenings_of(statements[s].opcode);
      for (const Weakening each : all) source.mutants.push_back({f, s, each});
      statements[s].is_traced = !all.empty() && !source.executed.empty();
    }
  }
  const std::string title = title_of(source);
  if (!source.executed.empty()) list_mutants(source, title);
  if (!mutation.mutant.starts_with(title + "#")) return {};
  std::size_t number = 0;
  const char* const end = mutation.mutant.data() + mutation.mutant.size();
  const auto [rest, error] = std::from_chars(mutation.mutant.data() + title.size() + 1, end, number);
  if (error != std::errc() || rest != end || number >= source.mutants.size())
    return invalid_argument("the mutant " + mutation.mutant + " does not exist; " + title + " has " +
                            std::to_string(source.mutants.size()) + " mutants, numbered from 0");
  const Mutant& mutant = source.mutants[number];
  Function& function = source.functions[mutant.function];
  Statement& statement = function.statements[mutant.statement];
  source.names.push_back(weaken(function, statement, mutant.weakening));
  statement.opcode = source.names.back();
  return {};
}

void note_execution(const Source& source, const Statement& statement) {
  const std::string title = title_of(source);
  for (std::size_t i = 0; i < source.mutants.size(); ++i) {
    const Mutant& mutant = source.mutants[i];
    if (&source.functions[mutant.function].statements[mutant.statement] == &statement)
      append_line(source.executed, "executed\t" + title + "#" + std::to_string(i));
  }
}

}  // namespace tutti::ptx
