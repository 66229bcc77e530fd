// Puts a kernel and the functions that it calls together: order, addresses of variables, registers, constants.
#include <algorithm>
#include <cstring>
#include <map>

#include "tests/ptx/machine/draft.h"

namespace tutti::ptx {
namespace {

constexpr std::uint32_t kSlotBytes[] = {4, 128, 256, 512};  // By Width.
constexpr std::uint32_t kZeroBytes = 512;                   // The constants begin with zeros, for unused operands.

std::uint32_t align(std::uint32_t offset, std::uint32_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

std::uint32_t place(const std::vector<Storage>& all, std::uint32_t from, std::vector<std::uint32_t>& offsets) {
  for (const Storage& each : all) {
    from = align(from, each.alignment);
    offsets.push_back(from);
    from += each.bytes;
  }
  return from;
}

struct Unit {  // A function of the kernel.
  const Function* function = nullptr;
  std::vector<std::size_t> callees;
  Layout layout;
  Frame frame;
  std::vector<Draft> drafts;
  std::uint32_t local_base = 0, local_end = 0, arena_base = 0, first = 0;
};

class Linker {
 public:
  Linker(const Source& source, const Function& kernel) : source_(source), kernel_(kernel) {}

  Status run(KernelInfo& info, Code& code) {
    TUTTI_CHECK_OK(collect(kernel_));
    place_locals();
    place_shared(info, code);
    for (Unit& unit : units_) {
      TUTTI_CHECK_OK(decode_function(source_, *unit.function, {unit.layout, shared_}, unit.drafts));
      if (unit.drafts.empty())
        return invalid_argument("the function " + std::string(unit.function->name) + " is empty");
      TUTTI_CHECK_OK(assign_registers(*unit.function, unit.drafts, unit.frame));
    }
    place_registers(code);
    emit(code);
    describe(info, code);
    return {};
  }

 private:
  Status collect(const Function& function);
  void bind_arguments(Unit& unit);
  void place_locals();
  void place_shared(KernelInfo& info, Code& code);
  void place_registers(Code& code);
  void emit(Code& code);
  void describe(KernelInfo& info, const Code& code) const;
  std::int32_t constant(std::int64_t number, Width width, Code& code);
  const Unit& unit_of(const Function* function) const { return units_[index_.at(function)]; }

  const Source& source_;
  const Function& kernel_;
  std::vector<Unit> units_;  // Callees first.
  std::map<const Function*, std::size_t> index_;
  std::unordered_map<std::string_view, std::uint32_t> shared_;
  std::map<std::pair<std::int64_t, Width>, std::int32_t> constants_;
};

// Adds the functions that `function` calls, then itself.
Status Linker::collect(const Function& function) {
  if (index_.contains(&function)) {
    if (index_[&function] != ~std::size_t{0}) return {};
    return unsupported("the PTX machine does not support recursion: " + std::string(function.name));
  }
  index_[&function] = ~std::size_t{0};
  Unit unit;
  unit.function = &function;
  for (const Statement& statement : function.statements) {
    if (!statement.opcode.starts_with("call")) continue;
    for (const Operand& operand : statement.operands) {
      const Function* const callee =
          operand.kind == Operand::Kind::symbol ? source_.find_function(operand.symbol) : nullptr;
      if (callee == nullptr) continue;
      TUTTI_CHECK_OK(collect(*callee));
      unit.callees.push_back(index_[callee]);
    }
  }
  index_[&function] = units_.size();
  units_.push_back(std::move(unit));
  return {};
}

// Variables of a function begin where those of its callers end, so no two active functions share memory.
void Linker::place_locals() {
  for (std::size_t u = units_.size(); u-- > 0;) {
    Unit& unit = units_[u];
    std::uint32_t end = align(unit.local_base, 16);
    if (!unit.function->is_kernel) end = place(unit.function->parameters, end, unit.layout.parameters);
    if (unit.function->is_kernel) place(unit.function->parameters, 0, unit.layout.parameters);
    end = place(unit.function->results, end, unit.layout.results);
    unit.local_end = align(place(unit.function->locals, end, unit.layout.locals), 16);
    for (const std::size_t callee : unit.callees)
      units_[callee].local_base = std::max(units_[callee].local_base, unit.local_end);
  }
  for (Unit& unit : units_) bind_arguments(unit);
}

// The arguments of a call are the parameters and results of the callee.
void Linker::bind_arguments(Unit& unit) {
  unit.layout.arguments.assign(unit.function->arguments.size(), 0);
  for (const Statement& statement : unit.function->statements) {
    if (!statement.opcode.starts_with("call")) continue;
    const Function* callee = nullptr;
    for (const Operand& operand : statement.operands) {
      if (operand.kind == Operand::Kind::symbol) callee = source_.find_function(operand.symbol);
    }
    if (callee == nullptr) continue;  // decode_function() reports it.
    const Layout& layout = unit_of(callee).layout;
    bool before = true;
    for (const Operand& operand : statement.operands) {
      if (operand.kind == Operand::Kind::symbol) before = false;
      const std::vector<std::uint32_t>& offsets = before ? layout.results : layout.parameters;
      for (std::size_t i = 0; i < operand.items.size() && i < offsets.size(); ++i) {
        if (operand.items[i].argument >= 0)
          unit.layout.arguments[static_cast<std::size_t>(operand.items[i].argument)] = offsets[i];
      }
    }
  }
}

// Shared variables that the kernel names. Dynamic shared memory follows the static variables.
void Linker::place_shared(KernelInfo& info, Code& code) {
  std::unordered_map<std::string_view, const Storage*> all, used;
  for (const Storage& each : source_.shared) all[each.name] = &each;
  for (const Unit& unit : units_) {
    for (const Statement& statement : unit.function->statements) {
      for (const Operand& operand : statement.operands) {
        if (const auto found = all.find(operand.symbol); found != all.end()) used.insert(*found);
      }
    }
  }
  std::uint32_t end = 0;
  for (const Storage& each : source_.shared) {
    if (each.is_extern || !used.contains(each.name)) continue;
    shared_[each.name] = align(end, each.alignment);
    end = shared_[each.name] + each.bytes;
  }
  code.dynamic_shared = align(end, 16);
  info.shared_bytes = end;
  for (const Storage& each : source_.shared) {
    if (each.is_extern) shared_[each.name] = code.dynamic_shared;
  }
}

// No two functions share slots: threads of a warp may be in different functions at the same time, and the place of a
// thread within a slot depends on the slot's width.
void Linker::place_registers(Code& code) {
  for (Unit& unit : units_) {
    unit.arena_base = code.arena_bytes;
    code.arena_bytes = align(unit.arena_base + unit.frame.bytes, 128);
    code.local_bytes = std::max(code.local_bytes, unit.local_end);
  }
}

// Returns the slot of a constant, for 32 threads.
std::int32_t Linker::constant(std::int64_t number, Width width, Code& code) {
  const auto [found, added] = constants_.emplace(std::pair(number, width), 0);
  if (!added) return found->second;
  found->second = ~static_cast<std::int32_t>(code.constants.size());
  std::byte bytes[512] = {};
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if (width == Width::bits32) std::memcpy(bytes + lane * 4, &number, 4);
    if (width == Width::bits64 || width == Width::bits128) std::memcpy(bytes + lane * 8, &number, 8);
  }
  const std::uint32_t mask = number != 0 ? ~0U : 0;
  if (width == Width::predicate) std::memcpy(bytes, &mask, sizeof mask);
  const std::uint32_t size = std::max(kSlotBytes[static_cast<std::size_t>(width)], 128U);
  code.constants.insert(code.constants.end(), bytes, bytes + size);
  return found->second;
}

void Linker::emit(Code& code) {
  code.constants.assign(kZeroBytes, std::byte{0});
  std::uint32_t next = 0;
  for (Unit& unit : units_) {
    unit.first = next;
    next += static_cast<std::uint32_t>(unit.drafts.size()) + 1;
  }
  for (Unit& unit : units_) {
    const auto slot = [&](std::int32_t reg) {
      return static_cast<std::int32_t>(unit.arena_base) + unit.frame.slots[static_cast<std::size_t>(reg)];
    };
    for (Draft& draft : unit.drafts) {
      Instruction in = draft.in;
      if (draft.guard >= 0) in.guard = slot(draft.guard);
      for (std::size_t i = 0; i < draft.slots.size(); ++i) {
        const DraftSlot& from = draft.slots[i];
        if (from.use == DraftSlot::Use::none) continue;
        in.r[i] = from.reg >= 0 ? slot(from.reg) : constant(from.number, from.width, code);
      }
      if (in.kind == Kind::branch) in.target += unit.first;
      if (in.kind == Kind::call) {
        const Unit& callee = unit_of(draft.callee);
        in.target = callee.first;
        in.r[0] = static_cast<std::int32_t>(callee.arena_base) + callee.frame.return_address;
      }
      if (in.kind == Kind::ret) in.r[0] = static_cast<std::int32_t>(unit.arena_base) + unit.frame.return_address;
      if (in.kind == Kind::check_written || in.kind == Kind::mark_written || in.kind == Kind::clear_written)
        in.r[1] += static_cast<std::int32_t>(unit.arena_base);
      code.instructions.push_back(in);
      code.sites.push_back({unit.function, &unit.function->statements[draft.statement]});
    }
    Instruction end;  // Code does not run past the end of a function.
    end.kind = Kind::trap;
    code.instructions.push_back(end);
    code.sites.push_back({unit.function, &unit.function->statements.back()});
  }
  code.entry = units_.back().first;
}

// ptxas needs some registers more for addresses, and fewer for values that it computes again.
void Linker::describe(KernelInfo& info, const Code& code) const {
  info.name = kernel_.name;
  info.local_bytes = code.local_bytes;
  info.threads_per_block_max = kernel_.threads_max;
  for (std::size_t i = 0; i < kernel_.parameters.size(); ++i) {
    const Storage& each = kernel_.parameters[i];
    info.parameters.push_back({units_.back().layout.parameters[i], each.bytes, each.alignment});
    info.parameter_bytes = info.parameters.back().offset + each.bytes;
  }
  std::uint32_t most = 0;
  for (const Unit& unit : units_) most = std::max(most, unit.frame.registers);
  const std::uint32_t limit = std::min(255U, 65536 / std::max(kernel_.threads_max, 1U) / 8 * 8);
  info.registers = std::min(align(most + 8, 8), limit);
}

}  // namespace

Status decode_source(Source& source) {
  for (const Function& function : source.functions) {
    if (!function.is_kernel) continue;
    source.kernels.emplace_back();
    source.codes.push_back(std::make_unique<Code>());
    source.codes.back()->source = &source;
    TUTTI_CHECK_OK(Linker(source, function).run(source.kernels.back(), *source.codes.back()));
  }
  for (std::size_t i = 0; i < source.kernels.size(); ++i) source.codes[i]->info = &source.kernels[i];
  return {};
}

}  // namespace tutti::ptx
