#include "tests/ptx/machine/decoder.h"

#include <algorithm>

#include "tests/ptx/machine/compute.h"

namespace tutti::ptx {
namespace {

constexpr Named<Special> kSpecials[] = {
    {"%tid.x", Special::tid_x},
    {"%tid.y", Special::tid_y},
    {"%tid.z", Special::tid_z},
    {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},
    {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},
    {"%ctaid.y", Special::ctaid_y},
    {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x},
    {"%nctaid.y", Special::nctaid_y},
    {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::laneid},
    {"%warpid", Special::warpid},
    {"%nwarpid", Special::nwarpid},
    {"%smid", Special::smid},
    {"%nsmid", Special::nsmid},
    {"%clock", Special::clock},
    {"%clock64", Special::clock64},
    {"%globaltimer", Special::globaltimer},
    {"%lanemask_eq", Special::lanemask_eq},
    {"%lanemask_lt", Special::lanemask_lt},
    {"%lanemask_le", Special::lanemask_le},
    {"%lanemask_gt", Special::lanemask_gt},
    {"%lanemask_ge", Special::lanemask_ge},
    {"%dynamic_smem_size", Special::dynamic_smem_size},
};

std::optional<OperandType> find_type(std::string_view name) {
  if (name == "pred") return OperandType{1, false, false};
  if (name.size() < 2 || std::string_view("busf").find(name[0]) == std::string_view::npos) return std::nullopt;
  unsigned bits = 0;
  for (const char c : name.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    bits = bits * 10 + static_cast<unsigned>(c - '0');
  }
  return OperandType{static_cast<std::uint8_t>(bits / 8), name[0] == 's', name[0] == 'f'};
}

}  // namespace

Decoder::Family Decoder::family_of(std::string_view name) {
  using Families = std::unordered_map<std::string_view, Family>;
  // Never destroyed, because static destructors may load kernels.
  static const Families& families = *new Families{
      {"setp", &Decoder::decode_compare},
      {"mov", &Decoder::decode_move},
      {"cvta", &Decoder::decode_address},
      {"ld", &Decoder::decode_access},
      {"ldu", &Decoder::decode_access},
      {"st", &Decoder::decode_access},
      {"atom", &Decoder::decode_atomic},
      {"red", &Decoder::decode_atomic},
      {"bra", &Decoder::decode_control},
      {"ret", &Decoder::decode_control},
      {"exit", &Decoder::decode_control},
      {"trap", &Decoder::decode_control},
      {"call", &Decoder::decode_call},
      {"bar", &Decoder::decode_barrier},
      {"barrier", &Decoder::decode_barrier},
      {"vote", &Decoder::decode_vote},
      {"activemask", &Decoder::decode_vote},
      {"match", &Decoder::decode_reduce},
      {"shfl", &Decoder::decode_shuffle},
      {"redux", &Decoder::decode_reduce},
      {"fence", &Decoder::decode_fence},
      {"membar", &Decoder::decode_fence},
      {"multimem", &Decoder::decode_multimem},
      {"nanosleep", &Decoder::decode_nothing},
      {"griddepcontrol", &Decoder::decode_nothing},
      {"prefetch", &Decoder::decode_nothing},
      {"prefetchu", &Decoder::decode_nothing},
      {"discard", &Decoder::decode_nothing},
  };
  const auto found = families.find(name);
  return found == families.end() ? &Decoder::decode_compute : found->second;
}

Status Decoder::decode(std::uint32_t index) {
  statement_ = &function_.statements[index];
  draft_ = {};
  draft_.statement = index;
  draft_.guard = statement_->guard;
  draft_.in.guard_negated = statement_->guard_negated;
  if (statement_->is_traced) {
    drafts_.push_back(draft_);
    drafts_.back().in.kind = Kind::trace;
  }
  parts_.clear();
  for (std::string_view rest = statement_->opcode; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    parts_.push_back(rest.substr(0, dot));
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  type_ = find_type(parts_.back()).value_or(OperandType{});
  draft_.in.bytes = type_.bytes;
  draft_.in.is_signed = type_.is_signed;
  draft_.in.is_float = type_.is_float;
  if ((this->*family_of(parts_.front()))()) return {};
  return unsupported(source_.name + ":" + std::to_string(statement_->line) + ": the PTX machine does not support '" +
                     std::string(statement_->text) + "' in " + std::string(function_.name));
}

bool Decoder::set_source(std::size_t slot, const Operand& operand, Width width) {
  draft_.slots[slot] = {DraftSlot::Use::source, width, operand.reg, operand.value};
  if (operand.kind == Operand::Kind::number) return true;
  return operand.kind == Operand::Kind::reg && function_.registers[static_cast<std::size_t>(operand.reg)] == width;
}

bool Decoder::set_result(std::size_t slot, const Operand& operand, Width width) {
  draft_.slots[slot] = {DraftSlot::Use::result, width, operand.reg, 0};
  return operand.kind == Operand::Kind::reg && function_.registers[static_cast<std::size_t>(operand.reg)] == width;
}

// An operand of a memory access, whose register may be wider than the type.
bool Decoder::set_loose(std::size_t slot, const Operand& operand, DraftSlot::Use use) {
  Width width = width_of(type_);
  if (operand.kind == Operand::Kind::reg) width = function_.registers[static_cast<std::size_t>(operand.reg)];
  if (operand.kind == Operand::Kind::symbol && operand.symbol == "_") {
    draft_.slots[slot] = {};
    return use == DraftSlot::Use::result;
  }
  if (operand.kind != Operand::Kind::reg && operand.kind != Operand::Kind::number) return false;
  draft_.slots[slot] = {use, width, operand.reg, operand.value};
  if (width == Width::bits64) draft_.in.wide = static_cast<std::uint8_t>(draft_.in.wide | 1U << slot);
  return width != Width::predicate && (type_.bytes == 16) == (width == Width::bits128);
}

std::optional<std::int64_t> Decoder::offset_of(const Operand& operand, Space& space) const {
  const auto find = [&](const std::vector<Storage>& in, const std::vector<std::uint32_t>& offsets) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].name == operand.symbol) return std::optional<std::int64_t>(offsets[i] + operand.value);
    }
    return std::optional<std::int64_t>();
  };
  const Layout& layout = addresses_.layout;
  if (operand.argument >= 0) {
    space = Space::local;
    return layout.arguments[static_cast<std::size_t>(operand.argument)] + operand.value;
  }
  space = function_.is_kernel ? Space::parameter : Space::local;
  if (const auto found = find(function_.parameters, layout.parameters)) return found;
  space = Space::local;
  if (const auto found = find(function_.results, layout.results)) return found;
  if (const auto found = find(function_.locals, layout.locals)) return found;
  space = Space::shared;
  const auto shared = addresses_.shared.find(operand.symbol);
  if (shared == addresses_.shared.end()) return std::nullopt;
  return shared->second + operand.value;
}

// Index of a global variable; the number of variables if there is none of this name.
std::uint32_t Decoder::find_variable(std::string_view name) const {
  const auto& all = source_.variables;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Storage& each) { return each.name == name; });
  return static_cast<std::uint32_t>(found - all.begin());
}

bool Decoder::add_run(std::string_view opcode) {
  const Computation* const found = Computations::all().find(std::string(opcode));
  if (found == nullptr) return false;
  draft_.in.run = found->run;
  drafts_.push_back(draft_);
  return true;
}

bool Decoder::decode_compute() {
  std::string opcode;
  for (const std::string_view part : parts_) {
    if (part != "uni") opcode += (opcode.empty() ? "" : ".") + std::string(part);
  }
  const Computation* const found = Computations::all().find(opcode);
  if (found == nullptr || operand_count() != found->operands.size()) return false;
  for (std::size_t i = 0; i < operand_count(); ++i) {
    const bool fits = i < found->results ? set_result(i, operand(i), found->operands[i])
                                         : set_source(i, operand(i), found->operands[i]);
    if (!fits) return false;
  }
  return add_run(opcode);
}

// setp.compare[.and|.or|.xor].type p[|q], a, b[, c]
bool Decoder::decode_compare() {
  if (parts_.size() < 3) return false;
  const Width width = width_of(type_);
  const bool combines = parts_.size() == 4;
  const std::size_t results = operand_count() - (combines ? 3 : 2);
  if (results < 1 || results > 2 || !set_result(0, operand(0), Width::predicate)) return false;
  draft_.in.has_predicate = results == 2;
  if (results == 2 && !set_result(1, operand(1), Width::predicate)) return false;
  if (!set_source(2, operand(results), width) || !set_source(3, operand(results + 1), width)) return false;
  if (combines) {
    if (operand(results + 2).negated || !set_source(4, operand(results + 2), Width::predicate)) return false;
    draft_.in.action = parts_[2] == "and" ? 1 : parts_[2] == "or" ? 2 : parts_[2] == "xor" ? 3 : 0;
    if (draft_.in.action == 0) return false;
  }
  return add_run("setp." + std::string(parts_[1]) + "." + std::string(parts_.back()));
}

bool Decoder::add_packing(const Operand& whole, const Operand& list, bool packs) {
  const std::string opcode =
      (packs ? "pack" : "unpack") + std::to_string(list.items.size()) + ".b" + std::to_string(type_.bytes * 8);
  const Computation* const found = Computations::all().find(opcode);
  if (found == nullptr) return false;
  std::size_t slot = 0;
  if (packs && !set_result(slot, whole, found->operands[slot])) return false;
  slot += packs ? 1 : 0;
  for (const Operand& item : list.items) {
    const Width width = found->operands[slot];
    if (!(packs ? set_source(slot, item, width) : set_result(slot, item, width))) return false;
    ++slot;
  }
  if (!packs && !set_source(slot, whole, found->operands[slot])) return false;
  return add_run(opcode);
}

bool Decoder::decode_move() {
  if (operand_count() != 2 || parts_.size() != 2) return false;
  const Operand& to = operand(0);
  const Operand& from = operand(1);
  if (to.kind == Operand::Kind::list) return add_packing(from, to, false);
  if (from.kind == Operand::Kind::list) return add_packing(to, from, true);
  if (from.kind == Operand::Kind::reg || from.kind == Operand::Kind::number) return decode_compute();
  if (from.kind == Operand::Kind::special) {
    const auto special = find_named(kSpecials, from.symbol);
    draft_.in.kind = Kind::special;
    draft_.in.action = static_cast<std::uint8_t>(special.value_or(Special::tid_x));
    if (!special || !set_result(0, to, width_of(type_))) return false;
    return drafts_.push_back(draft_), true;
  }
  Space space = Space::generic;
  if (const auto offset = offset_of(from, space)) {
    draft_.slots[1] = {DraftSlot::Use::source, width_of(type_), -1, *offset};
    return set_result(0, to, width_of(type_)) && add_run(type_.bytes == 8 ? "mov.u64" : "mov.u32");
  }
  draft_.in.kind = Kind::address_of;
  draft_.in.target = find_variable(from.symbol);
  if (draft_.in.target >= source_.variables.size() || !set_result(0, to, Width::bits64)) return false;
  draft_.in.value = from.value;
  return drafts_.push_back(draft_), true;
}

// cvta[.to].space.u64: adds or subtracts the space's window.
bool Decoder::decode_address() {
  if (operand_count() != 2 || type_.bytes != 8) return false;
  const bool to = parts_[1] == "to";
  const auto space = find_named(kSpaces, parts_[to ? 2 : 1]);
  if (!space) return false;
  std::uint64_t window = *space == Space::shared ? kSharedWindow : *space == Space::parameter ? kParameterWindow : 0;
  if (*space == Space::local || (*space == Space::parameter && !function_.is_kernel)) window = kLocalWindow;
  Operand from = operand(1);
  if (from.kind == Operand::Kind::symbol) {
    Space where = Space::generic;
    const auto offset = offset_of(from, where);
    if (!offset) return false;
    from = {};
    from.kind = Operand::Kind::number;
    from.value = *offset;
  }
  draft_.slots[2] = {DraftSlot::Use::source, Width::bits64, -1, static_cast<std::int64_t>(to ? 0 - window : window)};
  return set_result(0, operand(0), Width::bits64) && set_source(1, from, Width::bits64) && add_run("add.u64");
}

Status decode_function(const Source& source, const Function& function, const Addresses& addresses,
                       std::vector<Draft>& drafts) {
  Decoder decoder(source, function, addresses, drafts);
  for (std::uint32_t i = 0; i < function.statements.size(); ++i) TUTTI_CHECK_OK(decoder.decode(i));
  return {};
}

}  // namespace tutti::ptx
