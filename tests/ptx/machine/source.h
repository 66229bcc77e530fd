// PTX text as functions, statements and variables, before instructions are decoded.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/status.h"
#include "tests/ptx/machine/module.h"

namespace tutti::ptx {

enum class Width : std::uint8_t { predicate, bits32, bits64, bits128 };  // A register of 16 bits takes a slot of 32.

struct Operand {
  enum class Kind : std::uint8_t { none, reg, number, special, symbol, argument, memory, list };
  Kind kind = Kind::none;
  bool negated = false;        // !predicate
  std::int32_t reg = -1;       // Register of a reg or memory operand.
  std::int32_t argument = -1;  // Index in Function::arguments, of an argument or memory operand.
  std::int64_t value = 0;      // Number; or offset of a memory operand or symbol.
  std::string_view symbol;     // Name of a special register, or of a symbol or memory operand's symbol.
  std::vector<Operand> items;  // List: {a, b} or (a, b).
};

struct Statement {
  std::string_view opcode;
  std::vector<Operand> operands;
  std::int32_t guard = -1;  // Register, or -1.
  bool guard_negated = false;
  std::uint32_t line = 0;      // Line of the PTX text.
  std::uint32_t location = 0;  // Index in Source::locations.
  bool is_traced = false;      // See Mutation::executed.
  std::string_view text;
};

// A variable in parameter, local, shared, global or constant memory.
struct Storage {
  std::string_view name;
  std::uint32_t bytes = 0, alignment = 1;
  bool is_extern = false;
  std::vector<std::byte> initial;
};

struct Position {
  std::uint32_t file = 0, line = 0, column = 0;  // By .loc; line 0: unknown.
  auto operator<=>(const Position&) const = default;
};

// The positions of all .loc directives.
class Locations {
 public:
  std::uint32_t add(const Position& at, const Position& inlined_at);
  // Position, that of the call that was inlined, and so on.
  std::vector<Position> path(std::uint32_t location) const;

 private:
  struct Location {
    Position at;
    std::uint32_t caller = 0;
  };
  std::vector<Location> all_{1};
  std::map<Position, std::uint32_t> latest_;
};

struct Function {
  std::string_view name;
  bool is_kernel = false;
  std::vector<Storage> parameters, results, locals;
  std::vector<Storage> arguments;  // Parameters of calls, one for each declaration in a scope.
  std::vector<Width> registers;
  std::vector<std::string_view> register_names;
  std::vector<Statement> statements;
  std::unordered_map<std::string_view, std::uint32_t> labels;  // Index of the next statement.
  std::uint32_t threads_max = 1024;
};

// How a statement that orders memory or threads is weakened.
enum class Weakening : std::uint8_t {
  release,  // Becomes relaxed.
  acquire,  // Becomes relaxed.
  fence,    // Is removed.
  order,    // A sequentially consistent fence becomes one of release and acquire.
  barrier,  // Is removed. A reduction returns the thread's own predicate.
  mask,     // A constant member mask, or a register that is always all threads, loses its last thread. Another mask in
            // a register becomes that of all threads.
};

struct Mutant {
  std::size_t function = 0, statement = 0;  // Indexes.
  Weakening weakening = Weakening::release;
};

struct Source {
  std::string text, name, target;
  std::string executed;  // Mutation::executed
  std::vector<Mutant> mutants;
  Locations locations;
  std::vector<Function> functions;
  std::vector<Storage> shared;     // Shared variables of all functions.
  std::vector<Storage> variables;  // .global and .const
  std::unordered_map<std::uint32_t, std::string> files;
  std::deque<std::string> names;  // Names of registers that a declaration numbers.
  std::vector<KernelInfo> kernels;
  std::vector<VariableInfo> variable_infos;
  std::vector<std::unique_ptr<Code>> codes;  // As `kernels`.

  Source();
  ~Source();
  const Function* find_function(std::string_view wanted) const;
};

// Fills functions, variables and files from source.text.
Status parse_source(Source& source);

// Fills source.mutants and applies the mutation.
Status mutate_source(Source& source, const Mutation& mutation);

// Appends a line to source.executed for each mutant of the statement.
void note_execution(const Source& source, const Statement& statement);

}  // namespace tutti::ptx
