// Control flow, barriers, and exchanges within a warp.
#include <algorithm>

#include "tests/ptx/machine/decoder.h"

namespace tutti::ptx {
namespace {

constexpr Named<Vote> kVotes[] = {
    {"all", Vote::all}, {"any", Vote::any}, {"uni", Vote::uniform}, {"ballot", Vote::ballot}};
constexpr Named<Shuffle> kShuffles[] = {
    {"up", Shuffle::up}, {"down", Shuffle::down}, {"bfly", Shuffle::butterfly}, {"idx", Shuffle::index}};

}  // namespace

bool Decoder::decode_control() {
  const std::string_view name = parts_[0];
  draft_.in.kind = name == "bra" ? Kind::branch : name == "trap" ? Kind::trap : Kind::exit;
  if (name == "ret" && !function_.is_kernel) draft_.in.kind = Kind::ret;
  if (name == "bra") {
    if (operand_count() != 1 || operand(0).kind != Operand::Kind::symbol) return false;
    draft_.label = operand(0).symbol;
  }
  return drafts_.push_back(draft_), true;
}

bool Decoder::decode_call() {
  for (const Operand& each : statement_->operands) {
    if (each.kind == Operand::Kind::symbol) draft_.callee = source_.find_function(each.symbol);
  }
  draft_.in.kind = Kind::call;
  if (draft_.callee == nullptr) return false;
  return drafts_.push_back(draft_), true;
}

// r[0]: result; r[1]: number of the barrier; r[2]: threads; r[3]: predicate.
bool Decoder::decode_barrier() {
  if (parts_.size() > 2 && parts_[1] == "warp") {
    draft_.in.kind = Kind::warp_barrier;
    if (operand_count() != 1 || !set_source(1, operand(0), Width::bits32)) return false;
    return drafts_.push_back(draft_), true;
  }
  const auto has = [&](std::string_view part) { return std::find(parts_.begin(), parts_.end(), part) != parts_.end(); };
  draft_.in.kind = Kind::barrier;
  draft_.in.aligned = parts_[0] == "bar" || has("aligned");
  BarrierAction action = BarrierAction::wait;
  if (has("arrive")) action = BarrierAction::arrive;
  if (has("red")) action = has("and") ? BarrierAction::all : has("or") ? BarrierAction::any : BarrierAction::count;
  draft_.in.action = static_cast<std::uint8_t>(action);
  const bool reduces = has("red");
  std::size_t next = 0, left = operand_count();
  if (reduces) {
    const Width width = action == BarrierAction::count ? Width::bits32 : Width::predicate;
    if (left < 3 || !set_result(0, operand(next++), width)) return false;
    const Operand& predicate = operand(--left);
    draft_.in.value = predicate.negated ? 1 : 0;
    if (!set_source(3, predicate, Width::predicate)) return false;
  }
  if (next >= left || !set_source(1, operand(next++), Width::bits32)) return false;
  draft_.in.has_predicate = next < left;  // The number of threads is given.
  if (next < left && !set_source(2, operand(next++), Width::bits32)) return false;
  if (next != left || (action == BarrierAction::arrive && !draft_.in.has_predicate)) return false;
  return drafts_.push_back(draft_), true;
}

// r[0]: result; r[1]: predicate; r[2]: member mask.
bool Decoder::decode_vote() {
  if (parts_[0] == "activemask") {
    draft_.in.kind = Kind::active_mask;
    if (operand_count() != 1 || !set_result(0, operand(0), Width::bits32)) return false;
    return drafts_.push_back(draft_), true;
  }
  const auto action = parts_.size() == 4 && parts_[1] == "sync" ? find_named(kVotes, parts_[2]) : std::nullopt;
  if (!action || operand_count() != 3) return false;
  draft_.in.kind = Kind::vote;
  draft_.in.action = static_cast<std::uint8_t>(*action);
  draft_.in.value = operand(1).negated ? 1 : 0;
  const Width width = *action == Vote::ballot ? Width::bits32 : Width::predicate;
  if (!set_result(0, operand(0), width) || !set_source(1, operand(1), Width::predicate)) return false;
  if (!set_source(2, operand(2), Width::bits32)) return false;
  return drafts_.push_back(draft_), true;
}

// shfl.sync.mode.b32 d[|p], a, b, c, mask. r[1] is p.
bool Decoder::decode_shuffle() {
  const auto action = parts_.size() == 4 && parts_[1] == "sync" ? find_named(kShuffles, parts_[2]) : std::nullopt;
  if (!action || operand_count() < 5 || operand_count() > 6) return false;
  draft_.in.kind = Kind::shuffle;
  draft_.in.action = static_cast<std::uint8_t>(*action);
  draft_.in.has_predicate = operand_count() == 6;
  const std::size_t first = draft_.in.has_predicate ? 2 : 1;
  if (!set_result(0, operand(0), Width::bits32)) return false;
  if (first == 2 && !set_result(1, operand(1), Width::predicate)) return false;
  for (std::size_t i = 0; i < 4; ++i) {
    if (!set_source(2 + i, operand(first + i), Width::bits32)) return false;
  }
  return drafts_.push_back(draft_), true;
}

// redux.sync.op.type d, a, mask and match.any|all.sync.type d[|p], a, mask. r[0]: d; r[1]: a; r[2]: mask; r[3]: p.
bool Decoder::decode_reduce() {
  const bool matches = parts_[0] == "match";
  if (parts_.size() != 4 || operand_count() < 3) return false;
  const auto action = find_named(kAtomics, parts_[2]);
  if (!matches && (!action || type_.bytes != 4 || type_.is_float)) return false;
  draft_.in.kind = matches ? Kind::match : Kind::reduce;
  draft_.in.action = matches ? static_cast<std::uint8_t>(parts_[1] == "all") : static_cast<std::uint8_t>(*action);
  draft_.in.has_predicate = operand_count() == 4;
  const std::size_t first = draft_.in.has_predicate ? 2 : 1;
  if (first == 2 && !set_result(3, operand(1), Width::predicate)) return false;
  if (!set_result(0, operand(0), Width::bits32) || !set_source(1, operand(first), width_of(type_))) return false;
  draft_.in.wide = type_.bytes == 8 ? 2 : 0;
  if (!set_source(2, operand(first + 1), Width::bits32)) return false;
  return drafts_.push_back(draft_), true;
}

}  // namespace tutti::ptx
