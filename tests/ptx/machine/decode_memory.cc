// Loads, stores, atomics and fences.
#include <algorithm>

#include "tests/ptx/machine/decoder.h"

namespace tutti::ptx {
namespace {

constexpr Named<Order> kOrders[] = {{"weak", Order::weak},       {"volatile", Order::volatile_},
                                    {"relaxed", Order::relaxed}, {"acquire", Order::acquire},
                                    {"release", Order::release}, {"acq_rel", Order::acquire_release},
                                    {"sc", Order::sequential}};
constexpr Named<Scope> kScopes[] = {
    {"cta", Scope::block}, {"gpu", Scope::device}, {"gl", Scope::device}, {"sys", Scope::system}};
constexpr std::string_view kIgnored[] = {"ca", "cg", "cs",  "lu",   "cv",      "wb",
                                         "wt", "nc", "uni", "sync", "aligned", "cta"};

}  // namespace

// Order, scope, space and vector length. The scope of weak and volatile accesses does not matter.
bool Decoder::parse_qualifiers() {
  for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
    const std::string_view part = parts_[i];
    if (const auto order = find_named(kOrders, part)) {
      draft_.in.order = *order;
    } else if (const auto scope = find_named(kScopes, part)) {
      draft_.in.scope = *scope;
    } else if (const auto space = find_named(kSpaces, part)) {
      draft_.in.space = *space;
    } else if (part == "v2" || part == "v4") {
      draft_.in.count = part == "v2" ? 2 : 4;
    } else if (std::find(std::begin(kIgnored), std::end(kIgnored), part) == std::end(kIgnored) &&
               !part.starts_with("L1::") && !part.starts_with("L2::")) {
      return false;
    }
  }
  return true;
}

// Sets the address: r[4], or a constant.
bool Decoder::set_address(const Operand& operand) {
  draft_.in.value = operand.value;
  if (operand.kind != Operand::Kind::memory) return false;
  if (operand.reg >= 0) {
    const Width width = function_.registers[static_cast<std::size_t>(operand.reg)];
    draft_.slots[4] = {DraftSlot::Use::source, width, operand.reg, 0};
    if (width == Width::bits64) draft_.in.wide = static_cast<std::uint8_t>(draft_.in.wide | 1U << 4);
    if (draft_.in.space == Space::parameter && !function_.is_kernel) draft_.in.space = Space::local;
    return width == Width::bits64 || width == Width::bits32;
  }
  draft_.in.wide = static_cast<std::uint8_t>(draft_.in.wide | 1U << 4);
  if (operand.symbol.empty() && operand.argument < 0) return true;  // An absolute address.
  Space space = Space::generic;
  if (const auto offset = offset_of(operand, space)) {
    draft_.in.value = *offset;
    draft_.in.space = space;
    return true;
  }
  draft_.in.target = 1 + find_variable(operand.symbol);
  return draft_.in.target <= source_.variables.size();
}

bool Decoder::decode_access() {
  const bool loads = parts_[0] != "st";
  if (operand_count() != 2 || type_.bytes == 0 || !parse_qualifiers()) return false;
  draft_.in.kind = loads ? Kind::load : Kind::store;
  const Operand& data = operand(loads ? 0 : 1);
  const auto use = loads ? DraftSlot::Use::result : DraftSlot::Use::source;
  if (data.kind == Operand::Kind::list) {
    if (data.items.size() != draft_.in.count) return false;
    for (std::size_t i = 0; i < data.items.size(); ++i) {
      if (!set_loose(i, data.items[i], use)) return false;
    }
  } else if (draft_.in.count != 1 || !set_loose(0, data, use)) {
    return false;
  }
  if (!set_address(operand(loads ? 1 : 0)) || draft_.in.bytes * draft_.in.count > 32) return false;
  return drafts_.push_back(draft_), true;
}

// atom.op d, [a], b[, c] and red.op [a], b. r[0]: result; r[1], r[2]: operands; r[4]: address.
bool Decoder::decode_atomic() {
  std::optional<Atomic> action;
  std::vector<std::string_view> others;
  for (const std::string_view part : parts_) {
    const auto found = find_named(kAtomics, part);
    if (found) action = found;
    if (!found) others.push_back(part);
  }
  parts_ = others;
  const bool returns = parts_[0] == "atom";
  draft_.in.order = Order::relaxed;
  draft_.in.scope = Scope::device;
  if (!action || !parse_qualifiers() || type_.bytes < 2 || type_.bytes > 8) return false;
  if (type_.is_float && type_.bytes < 4) return false;
  const std::size_t count = (returns ? 2U : 1U) + (*action == Atomic::compare ? 2U : 1U);
  if (operand_count() != count) return false;
  draft_.in.kind = Kind::atomic;
  draft_.in.action = static_cast<std::uint8_t>(*action);
  std::size_t next = 0;
  draft_.in.has_predicate = returns;
  if (returns && !set_loose(0, operand(next++), DraftSlot::Use::result)) return false;
  if (draft_.slots[0].reg < 0) draft_.in.has_predicate = false;
  if (!set_address(operand(next++)) || !set_source(1, operand(next++), width_of(type_))) return false;
  if (next < count && !set_source(2, operand(next), width_of(type_))) return false;
  return drafts_.push_back(draft_), true;
}

// multimem.ld_reduce.relaxed.scope.global.add[.acc::f32][.vector].type d, [a] and
// multimem.st.relaxed.scope.global[.vector].type [a], b.
bool Decoder::decode_multimem() {
  constexpr Named<Multimem> kSums[] = {{"f32", Multimem::sum_float32},
                                       {"f64", Multimem::sum_float64},
                                       {"f16x2", Multimem::sum_float16},
                                       {"bf16x2", Multimem::sum_bfloat16}};
  const auto sum = find_named(kSums, parts_.back());
  if (!sum || parts_.size() < 5) return false;
  const bool stores = parts_[1] == "st";
  const bool adds = std::find(parts_.begin(), parts_.end(), "add") != parts_.end();
  if (stores == adds || (!stores && parts_[1] != "ld_reduce")) return false;
  parts_.erase(parts_.begin());
  std::erase(parts_, "add");
  std::erase(parts_, "acc::f32");
  if (type_.bytes == 0) type_ = {.bytes = 4};
  draft_.in.bytes = type_.bytes;
  draft_.in.multimem = stores ? Multimem::store : *sum;
  return decode_access() && drafts_.back().in.order == Order::relaxed && drafts_.back().in.space == Space::global;
}

bool Decoder::decode_fence() {
  draft_.in.kind = Kind::fence;
  draft_.in.order = Order::acquire_release;
  parts_.push_back({});  // No type follows.
  if (parts_.size() > 2 && parts_[1] == "proxy") return true;
  if (parts_[0] == "membar") draft_.in.order = Order::sequential;
  draft_.in.scope = Scope::block;
  for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
    const auto order = find_named(kOrders, parts_[i]);
    const auto scope = find_named(kScopes, parts_[i]);
    if (!order && !scope) return false;
    draft_.in.order = order.value_or(draft_.in.order);
    draft_.in.scope = scope.value_or(draft_.in.scope);
  }
  return drafts_.push_back(draft_), true;
}

// Hints. The statement remains a place to branch to.
bool Decoder::decode_nothing() {
  draft_.in.run = [](const Lanes&, const Instruction&) {};
  drafts_.push_back(draft_);
  return true;
}

}  // namespace tutti::ptx
